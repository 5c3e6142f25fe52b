package model

// Pooling identifies how the rows of a text are reduced to one output row.
type Pooling uint8

// Kinds of pooling.
const (
	NoPooling    Pooling = iota // the model generates text
	MeanPooling                 // of all rows (Reimers, Gurevych: Sentence-BERT, 2019)
	FirstPooling                // the row of the first token, [CLS]
	LastPooling                 // the row of the last token
)

var poolingNames = [...]string{"none", "mean", "first", "last"}

func (p Pooling) String() string { return poolingNames[p] }
