package adapters

// Setup has the questions of `parley init` for a workspace of a platform.
type Setup struct {
	ID    string // in a flag; empty for the platform's name
	Title string // empty for the platform's title
	// Note names the steps before the answers; empty for none.
	Note string
	// Manifest describes an app of the platform, for its form; empty for none.
	Manifest string
	Fields   []Field
}

// MainFile is the Block of a key of parley.yaml itself. A configuration that has the key keeps it.
const MainFile = "parley.yaml"

// Field is a question for one setting.
type Field struct {
	Key   string // of the block of the platform or of the agent
	Block string // policy for that block of the workspace's file, MainFile for parley.yaml; empty for the platform's or the agent's
	Title string
	// Secret values go into a file of their own.
	Secret bool
	// Default is the value of an empty answer.
	Default string
	// Env is the environment variable that has the value for scripts; empty for none.
	Env string
	// Options are the values to choose from; empty if any text may be the value.
	Options []string
	// Unasked says that the value is the default, which is also that of the configuration, unless one is given.
	Unasked bool
	// Made says that a random word is the value unless one is given.
	Made bool
	// Optional says that the setting may stay unset.
	Optional bool
	// List says that the setting is a list, whose items an answer has with commas between them.
	List bool
	// Form is the line of the file, with %s for the value; empty for the key and the value.
	Form string
}
