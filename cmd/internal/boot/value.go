package boot

import (
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"strconv"
	"time"

	"github.com/alecthomas/kong"
)

// readers are how values of flags are read, with errors that say what is wanted.
// (kong and the standard library speak of bits and of functions of Go.)
func readers() []kong.Option {
	whole := reader(func(text string, v reflect.Value) error {
		n, err := strconv.ParseInt(text, 10, v.Type().Bits())
		if err != nil {
			return fmt.Errorf("%q is no whole number", text)
		}
		v.SetInt(n)
		return nil
	})
	return []kong.Option{
		kong.KindMapper(reflect.Int, whole),
		kong.KindMapper(reflect.Int64, whole),
		kong.KindMapper(reflect.Float64, reader(func(text string, v reflect.Value) error {
			n, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return fmt.Errorf("%q is no number", text)
			}
			v.SetFloat(n)
			return nil
		})),
		kong.TypeMapper(reflect.TypeFor[time.Duration](), reader(func(text string, v reflect.Value) error {
			d, err := time.ParseDuration(text)
			if err != nil {
				return fmt.Errorf("%q is no duration such as 500ms, 30s or 2h", text)
			}
			v.SetInt(int64(d))
			return nil
		})),
		kong.TypeMapper(reflect.TypeFor[netip.Prefix](), reader(func(text string, v reflect.Value) error {
			p, err := netip.ParsePrefix(text)
			if err != nil {
				return fmt.Errorf("%q is no network such as 10.0.0.0/8 or fd00::/8", text)
			}
			v.Set(reflect.ValueOf(p))
			return nil
		})),
	}
}

// reader makes a mapper of a function that reads a text; what the file has as a
// number is a text here too.
func reader(read func(text string, v reflect.Value) error) kong.MapperFunc {
	return func(ctx *kong.DecodeContext, target reflect.Value) error {
		return read(fmt.Sprint(ctx.Scan.Pop().Value), target)
	}
}

// requireValues has all flags of a program refuse to stand without a value.
func requireValues(node *kong.Node) {
	for _, flag := range node.Flags {
		if !flag.IsBool() {
			flag.Mapper = valueMapper{flag.Mapper}
		}
	}
	for _, child := range node.Children {
		requireValues(child)
	}
}

// valueMapper looks at what follows a flag before another mapper reads it.
type valueMapper struct{ kong.Mapper }

func (m valueMapper) Decode(ctx *kong.DecodeContext, target reflect.Value) error {
	switch next := ctx.Scan.Peek(); {
	case next.IsEOL():
		return errors.New("needs a value")
	case next.IsValue():
	case isNegative(next.String()): // kong takes it for a short flag
		ctx.Scan.Pop()
		ctx.Scan.PushTyped(next.Value, kong.FlagValueToken)
	default:
		return fmt.Errorf("needs a value, and %s is a flag; a value that begins with - is given as %s=-VALUE", next, ctx.Value.ShortSummary())
	}
	return m.Mapper.Decode(ctx, target)
}

// isNegative reports whether a text begins as a number below zero.
func isNegative(text string) bool {
	return len(text) > 1 && text[0] == '-' && text[1] >= '0' && text[1] <= '9'
}
