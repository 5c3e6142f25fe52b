package tokenizer

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nikolalohinski/gonja/v2/builtins"
	"github.com/nikolalohinski/gonja/v2/exec"
)

// templateEnvironment is what chat templates may call: gonja's filters, tests and methods, less those that can make a long
// text of a short one, which are either replaced by bounded ones or left out.
func templateEnvironment() *exec.Environment {
	filters := pick(builtins.Filters.Get, strings.Fields(`abs attr capitalize count d default dictsort e escape first float
		groupby int items last length list lower map max min reject rejectattr reverse round safe select selectattr sort
		string title trim unique upper wordcount`))
	filters["tojson"] = filterJSON
	filters["join"] = filterJoin
	filters["replace"] = filterReplace
	filters["indent"] = filterIndent

	methods := builtins.Methods
	str := pick(methods.Str.Get, strings.Fields(`capitalize count endswith find isalnum isalpha isascii isdecimal isdigit
		islower isnumeric isspace istitle isupper lower partition removeprefix removesuffix rfind rpartition splitlines
		startswith title upper`))
	str["strip"], str["lstrip"], str["rstrip"] = methodStrip(true, true), methodStrip(true, false), methodStrip(false, true)
	str["split"], str["rsplit"] = methodSplit(false), methodSplit(true)
	str["replace"] = methodReplace
	str["join"] = methodJoin
	str["format"] = methodFormat
	methods.Str = exec.NewMethodSet(str)
	methods.Dict = exec.NewMethodSet(pick(methods.Dict.Get, strings.Fields("copy get items keys values")))
	methods.List = exec.NewMethodSet(pick(methods.List.Get, strings.Fields("append copy")))

	globals := map[string]any{"range": boundedRange, "strftime_now": strftimeNow}
	for _, name := range []string{"dict", "namespace", "joiner", "cycler"} {
		globals[name], _ = builtins.GlobalFunctions.Get(name)
	}
	return &exec.Environment{
		Context:           exec.NewContext(globals),
		Filters:           exec.NewFilterSet(filters),
		Tests:             builtins.Tests,
		ControlStructures: guardedTags(),
		Methods:           methods,
	}
}

func pick[T any](get func(string) (T, bool), names []string) map[string]T {
	picked := make(map[string]T)
	for _, name := range names {
		if v, ok := get(name); ok {
			picked[name] = v
		}
	}
	return picked
}

var errTooLong = errors.New("the text would be too long")

func boundedRange(_ *exec.Evaluator, args *exec.VarArgs) ([]int, error) {
	bounds := [3]int{0, 0, 1}
	if len(args.Args) < 1 || len(args.Args) > 3 {
		return nil, errors.New("range takes one to three numbers")
	}
	for i, a := range args.Args {
		if !a.IsInteger() {
			return nil, errors.New("range takes whole numbers")
		}
		bounds[i] = a.Integer()
	}
	if len(args.Args) == 1 {
		bounds[0], bounds[1] = 0, bounds[0]
	}
	if bounds[2] == 0 {
		return nil, errors.New("range cannot advance by 0")
	}
	numbers := []int{}
	for i := bounds[0]; bounds[2] > 0 && i < bounds[1] || bounds[2] < 0 && i > bounds[1]; i += bounds[2] {
		if len(numbers) == maxRangeSize {
			return nil, fmt.Errorf("range has more than %d numbers", maxRangeSize)
		}
		numbers = append(numbers, i)
	}
	return numbers, nil
}

// strftimeNow formats the current date by the verbs that templates use.
func strftimeNow(args *exec.VarArgs) *exec.Value {
	now := time.Now()
	verbs := strings.NewReplacer("%d", now.Format("02"), "%b", now.Format("Jan"), "%B", now.Format("January"),
		"%m", now.Format("01"), "%Y", now.Format("2006"), "%y", now.Format("06"), "%H", now.Format("15"),
		"%M", now.Format("04"), "%S", now.Format("05"), "%A", now.Format("Monday"), "%a", now.Format("Mon"),
		"%I", now.Format("03"), "%p", now.Format("PM"), "%F", now.Format(time.DateOnly), "%%", "%")
	return exec.AsValue(verbs.Replace(args.First().String()))
}

func filterReplace(e *exec.Evaluator, in *exec.Value, args *exec.VarArgs) *exec.Value {
	return valueOr(replace(budgetOf(e.Environment.Context).bytes, in.String(), args))
}

func filterJoin(e *exec.Evaluator, in *exec.Value, args *exec.VarArgs) *exec.Value {
	if in.IsError() {
		return in
	}
	between := ""
	if len(args.Args) > 0 {
		between = args.Args[0].String()
	} else if d, ok := args.KwArgs["d"]; ok {
		between = d.String()
	}
	if attribute, ok := args.KwArgs["attribute"]; ok && !attribute.IsNil() {
		return exec.AsValue(errors.New("join does not support attribute"))
	}
	return valueOr(join(budgetOf(e.Environment.Context).bytes, between, in))
}

// filterIndent indents all lines but the first, blank ones excepted.
func filterIndent(e *exec.Evaluator, in *exec.Value, args *exec.VarArgs) *exec.Value {
	pad := "    "
	if len(args.Args) > 0 {
		switch width := args.Args[0]; {
		case !width.IsInteger():
			pad = width.String()
		case width.Integer() < 0 || width.Integer() > 32:
			return exec.AsValue(errors.New("indent takes a width of 0 to 32"))
		default:
			pad = strings.Repeat(" ", width.Integer())
		}
	}
	text := in.String()
	if strings.Count(text, "\n")*len(pad)+len(text) > budgetOf(e.Environment.Context).bytes {
		return exec.AsValue(errTooLong)
	}
	lines := strings.Split(text, "\n")
	for i := range lines {
		if i > 0 && lines[i] != "" {
			lines[i] = pad + lines[i]
		}
	}
	return exec.AsValue(strings.Join(lines, "\n"))
}

func valueOr(text string, err error) *exec.Value {
	if err != nil {
		return exec.AsValue(err)
	}
	return exec.AsValue(text)
}
