package main

type inspectCmd struct {
	Canon inspectCanonCmd `cmd:"" help:"Canonical forms of URLs: lines of URL TAB base in, fetch form TAB key or ERR TAB reason out."`
}
