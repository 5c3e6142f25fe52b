package testguest

import "time"

// StepsFile is the path in the guest of the file with the steps, as JSON.
const StepsFile = "/steps.json"

// SetupFile is the path in the guest of the file with a Setup, as JSON. It is optional.
const SetupFile = "/setup.json"

// Setup tells command init what to do before the steps.
type Setup struct {
	Modules []string // paths in the guest of kernel modules, in the order of loading
	Shares  []Share  // to mount. If one is at "/", the steps run in it as their root
}

// Mark begins a line of the console that holds a Result as JSON.
const Mark = "@result "

// Step is one command of the guest, which runs to its end or is a server during some actions.
type Step struct {
	Name   string
	Args   []string // the first is a path
	Fill   []int    // nodes whose memory is used up while the command runs
	Cpuset *Cpuset  // the cpuset of the command; nil: the whole machine
	While  []Action // performed in order while the command runs, which then gets SIGTERM
	Read   []string // files whose content is in the result, if they exist
	Limit  time.Duration
}

// Cpuset is a cpuset: lists of CPUs and of memory nodes in the format of the kernel ("0-3,8").
type Cpuset struct{ CPUs, Mems string }

// Action is performed while a command runs. Exactly one field is set.
type Action struct {
	Post   *Post    // a request, repeated until the server listens
	Look   bool     // read the state of the process from /proc
	Run    []string // run another command to its end
	Cpuset *Cpuset  // change the cpuset of a step that has one
	Wait   time.Duration
}

// Post is an HTTP request; a GET request if it has no body.
type Post struct{ URL, Body string }

// Result is the outcome of a step.
type Result struct {
	Name           string
	Exit           int // -1: ended by a signal, or never started
	Stdout, Stderr string
	Seconds        float64 // by the clock of the guest
	Seen           []Seen  // one per action
	Files          map[string][]byte
	Err            string // what init could not do; "": nothing
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
