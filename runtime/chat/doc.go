// Package chat prepares conversations for chat templates.
//
// Templates of models take different lists of messages: some refuse a system message after the
// first or two user messages in a row, some leave messages out without an error, some show no
// tools. A History marks each text of a conversation with an origin and offers Versions of the
// conversation, the least changed one first: as it is, with adjacent messages of one role merged,
// with late system texts moved, and so on. The caller renders them until the output has, by
// origin, all texts that must not get lost (Missing).
//
// Origins also tell which parts of a prompt users and tools wrote (Guarded): such text must not
// spell control tokens.
package chat
