package boot

import (
	"io"
	"log/slog"
	"runtime/debug"

	"github.com/alecthomas/kong"
)

// Common is embedded by the grammar of every program.
type Common struct {
	Config      string           `group:"program" placeholder:"FILE" help:"YAML file with values; its keys are the names of flags."`
	PrintConfig bool             `group:"program" help:"Print the values in effect as YAML, with secrets masked, and exit."`
	LogLevel    string           `group:"program" enum:"debug,info,warn,error" default:"info" placeholder:"LEVEL" help:"Lowest level that is logged: debug, info, warn or error (info)."`
	LogFormat   string           `group:"program" enum:"text,json" default:"text" placeholder:"FORMAT" help:"Format of the log on stderr: text or json (text)."`
	Version     kong.VersionFlag `group:"program" help:"Print the version and exit."`
}

func (c *Common) common() *Common { return c }

// Logger returns a logger that writes to w.
func (c *Common) Logger(w io.Writer) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.LogLevel)); err != nil {
		return nil, Usage("log-level: %v", err)
	}
	opts := &slog.HandlerOptions{Level: level}
	if c.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, opts)), nil
	}
	return slog.New(slog.NewTextHandler(w, opts)), nil
}

// release is what an image was built as, where the linker sets it: there is no
// repository to read it from (-ldflags "-X seine/cmd/internal/boot.release=…").
var release string

// Version is the version of this program: what the linker set, else by its
// build information a release or pseudo-version, else devel with the revision it
// was built from.
func Version() string {
	if release != "" {
		return release
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "devel"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	version := "devel"
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && len(s.Value) >= 12:
			version += "+" + s.Value[:12]
		case s.Key == "vcs.modified" && s.Value == "true":
			version += "+dirty"
		}
	}
	return version
}
