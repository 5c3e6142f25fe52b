package tokenizer

import (
	"errors"
	"fmt"

	"sandwich/runtime/api"
)

// ErrMessages is wrapped by errors that report that the template refuses the conversation in every
// version that was tried (raise_exception). The caller of the API is at fault, not the model.
var ErrMessages = errors.New("the chat template refuses the messages")

// Limits of a conversation and of its rendered text.
const (
	maxMessages = 10_000
	maxChatText = 64 << 20 // bytes of all messages together

	messageBytes = 256 // allowance for a message, in addition to its text
)

// Conversation is the input of a chat template.
type Conversation struct {
	Messages []api.Message
	Tools    []api.Tool // shown to the model by the template, or in a system text written by package chat
	// Variables is a JSON object with additional variables for the template, or empty. Standard
	// variables override variables of the same name.
	Variables string
	Reply     bool          // end the text where the assistant's reply starts
	Warnings  *api.Warnings // collects what was moved or left out; may be nil

	typed bool // contents are lists of parts with a type, for templates that read nothing else
}

func checkMessages(msgs []api.Message) error {
	if len(msgs) == 0 {
		return fmt.Errorf("%w: the conversation is empty; send at least one message", ErrMessages)
	}
	if len(msgs) > maxMessages {
		return fmt.Errorf("%w: %d messages are more than the limit of %d", ErrMessages, len(msgs), maxMessages)
	}
	total := 0
	for _, m := range msgs {
		total += len(m.Role) + len(m.Content) + len(m.Reasoning)
		for _, c := range m.Calls {
			total += len(c.Name) + len(c.Arguments)
		}
	}
	if total > maxChatText {
		return fmt.Errorf("%w: the messages have %d bytes of text, more than the limit of %d", ErrMessages, total,
			maxChatText)
	}
	return nil
}
