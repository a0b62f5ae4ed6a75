// Package boot is how a program of Seine starts: flags, environment and a YAML
// file become values, a logger is made, signals become contexts, and an error
// becomes one line and an exit code.
//
// A program describes its flags as a struct for kong and hands it to an App.
// Each value comes from the first that names it: the command line, the
// environment (SEINE_ and the flag's name in capitals, - as _), the YAML file
// given by --config or SEINE_CONFIG (keys are the flags' names), the default.
// Both programs may share one file: a key must be a flag of either. The groups of flags that
// they share live here too: Common, RedisFlags, NameFlag, CrawlFlags,
// ProcessFlags and SeedFlags.
package boot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/VictoriaMetrics/metrics"
	"github.com/alecthomas/kong"

	"seine/frontier"
	"seine/shard"
)

// The exit codes of all programs.
const (
	ExitDone    = 0   // did what was asked, or stopped in order after a first signal
	ExitFailed  = 1   // something went wrong; the line on stderr has what
	ExitUsage   = 2   // flags, environment or file are wrong; nothing was done
	ExitRefused = 3   // the crawl is missing, exists, is in use or differs; or Redis is not fit for it
	ExitAborted = 130 // ended by a second signal, or while it could not stop in order
)

// ErrUsage is an error of what the user gave: it ends with ExitUsage.
var ErrUsage = errors.New("usage")

// App is one program.
type App struct {
	Name    string
	About   string
	Grammar any // pointer to a struct for kong that embeds Common
	In      io.Reader
	Out     io.Writer
	Err     io.Writer
	Environ []string // as of os.Environ
}

// Env is what a command works with.
type Env struct {
	Stop  context.Context // ends with the first signal: stop in order
	Abort context.Context // ends with the second: stop at once
	In    io.Reader       // its reads end with Stop
	Out   io.Writer
	Err   io.Writer
	Log   *slog.Logger
	Given []string // names of the flags on the command line

	Metrics *metrics.Set // of the program's clients of Redis
}

// Main runs the program of this process with its arguments and signals, and
// returns the exit code.
func Main(name, about string, grammar any) int {
	if err := limitMemory(); err != nil {
		fmt.Fprintf(os.Stderr, "%s: the memory limit of this control group cannot be read, going on without: %v\n", name, err)
	}
	shard.DiscardDriverLog()
	app := App{Name: name, About: about, Grammar: grammar, In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Environ: os.Environ()}
	stop, abort, done := Signals(context.Background())
	defer done()
	// An aborted program may hang where no context reaches, as in reading stdin.
	defer context.AfterFunc(abort, func() {
		time.AfterFunc(abortGrace, func() { os.Exit(ExitAborted) })
	})()
	return app.Run(stop, abort, os.Args[1:])
}

// memoryShare is the part of a control group's memory that the Go heap may use
// before the collector works harder; the rest is for stacks, buffers of the
// kernel and what a collection needs.
const memoryShare = 0.9

// limitMemory sets Go's memory limit from the control group, where there is
// one. GOMEMLIMIT goes before it. (Processors are limited by Go itself.)
func limitMemory() error {
	_, err := memlimit.Set(memlimit.WithRatio(memoryShare))
	if errors.Is(err, memlimit.ErrNoCgroup) || errors.Is(err, memlimit.ErrCgroupsNotSupported) {
		return nil
	}
	return err
}

// cacheShare is the part of the memory that idle connections, TLS sessions and
// names may take together.
const cacheShare = 8

func cacheMemory() int64 { return Memory() / cacheShare }

// Memory is the memory limit, or the machine's memory where there is no limit; 0
// if neither is known.
func Memory() int64 {
	if limit := debug.SetMemoryLimit(-1); limit < math.MaxInt64 {
		return limit
	}
	all, err := memlimit.FromSystem()
	if err != nil {
		return 0
	}
	return int64(min(all, math.MaxInt64))
}

// abortGrace is how long an aborted program may take to end.
const abortGrace = 3 * time.Second

// exited carries the code of a flag that ends the program, such as --help.
type exited int

// Run parses args, calls the selected command's Run(*Env) error, or
// Run(*Env, grammar) error, and returns the exit code. Errors are printed as
// one line.
func (a *App) Run(stop, abort context.Context, args []string) (code int) {
	defer func() {
		switch v := recover().(type) {
		case nil:
		case exited:
			code = int(v)
		default:
			panic(v)
		}
	}()
	selected, common, err := a.parse(args)
	if err != nil {
		return a.fail(fmt.Errorf("%w: %w", ErrUsage, err))
	}
	if common.PrintConfig {
		printConfig(a.Out, selected.Flags())
		return ExitDone
	}
	if err := checkBounds(selected); err != nil {
		return a.fail(usage(err))
	}
	log, err := common.Logger(a.Err)
	if err != nil {
		return a.fail(err)
	}
	for _, name := range strangeEnv(selected.Model, a.Environ) {
		log.Warn("environment variable names no flag", "name", name)
	}
	for _, name := range typedPasswords(selected) {
		log.Warn("a password on the command line shows in lists of processes; put it into the environment, a file or the configuration file", "flag", "--"+name)
	}
	env := &Env{Stop: stop, Abort: abort, In: &input{ctx: stop, r: a.In}, Out: a.Out, Err: a.Err, Log: log, Given: onCommandLine(selected), Metrics: metrics.NewSet()}
	err = selected.Run(env, a.Grammar)
	if err != nil && abort.Err() != nil {
		a.fail(err)
		return ExitAborted
	}
	return a.fail(err)
}

// parse reads flags, environment and file into the grammar.
func (a *App) parse(args []string) (*kong.Context, *Common, error) {
	carrier, ok := a.Grammar.(interface{ common() *Common })
	if !ok {
		return nil, nil, fmt.Errorf("boot: %T does not embed Common", a.Grammar)
	}
	file, err := loadFile(configPath(args, a.Environ))
	if err != nil {
		return nil, nil, err
	}
	parser, err := a.parser(kong.Resolvers(file, environ(a.Environ)))
	if err != nil {
		return nil, nil, err
	}
	selected, err := parser.Parse(args)
	if err != nil {
		return nil, nil, rephrase(err)
	}
	return selected, carrier.common(), nil
}

// parser is kong's, for the flags and verbs of the program.
func (a *App) parser(more ...kong.Option) (*kong.Kong, error) {
	parser, err := kong.New(a.Grammar, append(append(readers(),
		kong.Name(a.Name), kong.Description(a.About), kong.Writers(a.Out, a.Err),
		kong.Exit(func(code int) { panic(exited(code)) }),
		kong.Vars{"version": a.Name + " " + Version()},
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true, WrapUpperBound: 110, FlagsLast: true}),
		kong.Help(printHelp),
		kong.ExplicitGroups(groups),
	), more...)...)
	if err != nil {
		return nil, fmt.Errorf("boot: %w", err)
	}
	requireValues(parser.Model.Node)
	return parser, nil
}

// fail prints err, if any, and returns its exit code.
func (a *App) fail(err error) int {
	if err == nil {
		return ExitDone
	}
	text := strings.TrimPrefix(strings.TrimPrefix(oneLine(err), ErrUsage.Error()+": "), a.Name+": ")
	if more := advice(err); more != "" {
		text = strings.TrimSuffix(text, ".") + more
	}
	fmt.Fprintf(a.Err, "%s: %s\n", a.Name, text)
	switch {
	case errors.Is(err, ErrUsage):
		return ExitUsage
	}
	for _, refusal := range []error{frontier.ErrDiffers, frontier.ErrLayout, frontier.ErrNoCrawl, frontier.ErrExists, frontier.ErrLive, frontier.ErrPartial, shard.ErrUnfit, shard.ErrNoBloom, shard.ErrForbidden} {
		if errors.Is(err, refusal) {
			return ExitRefused
		}
	}
	return ExitFailed
}

// oneLine is the text of an error in one line. What a line before has, alone or as a
// part of it, is left out. Shards with one cause are named together.
func oneLine(err error) string {
	var parts []string
	add := func(text string) {
		for _, line := range strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }) {
			if !slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(p, line) }) {
				parts = append(parts, line)
			}
		}
	}
	var faults []frontier.ShardFault
	first, before := 0, "" // where the first fault is, and the text that wraps it
	for _, p := range partsOf(err) {
		e, ok := p.err.(*shard.Error)
		if !ok || e.Shard < 0 || faults != nil && p.before != "" {
			add(p.before + p.err.Error())
			continue
		}
		if faults == nil {
			first, before = len(parts), p.before
		}
		faults = append(faults, frontier.ShardFault{Shard: e.Shard, Cause: strings.ReplaceAll(fmt.Sprintf("%s: %v", e.Op, e.Err), "\n", "; ")})
	}
	if faults != nil {
		texts := frontier.FaultTexts(faults)
		texts[0] = before + texts[0]
		parts = slices.Insert(parts, first, texts...)
	}
	return strings.Join(parts, "; ")
}

// part is one of the errors that an error joins, and the text that wraps it.
type part struct {
	before string
	err    error
}

// partsOf takes an error apart: an error of a shard stays whole, and so does one whose
// text does not end with that of the error that it wraps.
func partsOf(err error) []part {
	var inner []error
	switch e := err.(type) {
	case *shard.Error:
	case interface{ Unwrap() []error }:
		inner = e.Unwrap()
	case interface{ Unwrap() error }:
		inner = append(inner, e.Unwrap())
	}
	inner = slices.DeleteFunc(slices.Clone(inner), func(e error) bool { return e == nil })
	if len(inner) == 0 {
		return []part{{"", err}}
	}
	if errors.Join(inner...).Error() == err.Error() {
		var all []part
		for _, e := range inner {
			all = append(all, partsOf(e)...)
		}
		return all
	}
	before, ends := strings.CutSuffix(err.Error(), inner[len(inner)-1].Error())
	if !ends {
		return []part{{"", err}}
	}
	all := partsOf(inner[len(inner)-1])
	all[0].before = before + all[0].before
	return all
}

// Usage makes an error of what the user gave.
func Usage(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrUsage}, args...)...)
}
