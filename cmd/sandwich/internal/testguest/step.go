package testguest

import "time"

// StepsFile is the path in the guest of the file with the steps, as JSON.
const StepsFile = "/steps.json"

// Mark begins a line of the console that holds a Result as JSON.
const Mark = "@result "

// Step is one command of the guest, which runs to its end or is a server during some actions.
type Step struct {
	Name  string
	Args  []string // the first is a path
	Fill  []int    // nodes that have no memory left meanwhile
	Walls *Walls   // the cpuset to start in; nil: the whole machine
	While []Action // done in order while the command runs, which then gets SIGTERM
	Read  []string // files whose content comes back, where they exist
	Limit time.Duration
}

// Walls is a cpuset: lists of CPUs and of memory nodes in the format of the kernel ("0-3,8").
type Walls struct{ CPUs, Mems string }

// Action is performed while a command runs. Exactly one field is set.
type Action struct {
	Post  *Post    // asked again until the server listens
	Look  bool     // at the process from outside
	Run   []string // another command, to its end
	Walls *Walls   // the cpuset of a step that has one changes to this
	Wait  time.Duration
}

// Post is an HTTP request; a GET request if it has no body.
type Post struct{ URL, Body string }

// Result is the outcome of a step.
type Result struct {
	Name           string
	Exit           int // -1: ended by a signal, or never started
	Stdout, Stderr string
	Seconds        float64 // on the guest's clock
	Seen           []Seen  // one an action
	Files          map[string][]byte
	Trouble        string // what init could not do
}

// Seen is the outcome of one action.
type Seen struct {
	Status  int     // of a Post, or the exit code of a Run
	Body    string  // of a Post, or what a Run printed
	Process Process // of a Look
}

// Process describes a running process as /proc shows it.
type Process struct {
	NumaMaps string // /proc/PID/numa_maps
	Tasks    []Task
}

// Task describes a thread.
type Task struct {
	ID      int
	Name    string
	Allowed string // CPUs it may run on, as a list
	Mems    string // memory nodes it may use, as a list
	CPU     int    // the last one it ran on
}
