package postgres

import (
	"fmt"
	"slices"
	"strings"
)

// column is one of the table, and what it is made of: an expression of the
// record's JSON, j.
type column struct{ name, kind, from string }

// plain is a column of the same name as its field.
func plain(name, kind string) column {
	from := fmt.Sprintf("(j->>'%s')::%s", name, kind)
	switch kind {
	case "text":
		from = fmt.Sprintf("j->>'%s'", name)
	case "jsonb":
		from = fmt.Sprintf("j->'%s'", name)
	case "boolean": // left out where false
		from = fmt.Sprintf("coalesce((j->>'%s')::boolean, false)", name)
	}
	return column{name, kind, from}
}

// columns are those of the table beside url and rest.
var columns = []column{
	plain("v", "integer"), plain("status", "integer"), {"fetch_status", "integer", "(j->>'status')::integer"}, plain("fetched_at", "timestamptz"), plain("depth", "bigint"),
	plain("site", "text"), plain("content_type", "text"), plain("charset", "text"), plain("bytes", "bigint"),
	plain("wire_bytes", "bigint"), plain("seconds", "double precision"), plain("title", "text"), plain("links", "integer"),
	plain("truncated", "boolean"), plain("noindex", "boolean"),
	{"error_class", "text", "j->'error'->>'class'"}, {"error_text", "text", "j->'error'->>'text'"},
	plain("attempts", "integer"), plain("redirects", "integer"), plain("location", "text"), plain("location_seen", "boolean"), plain("location_refused", "text"),
	plain("meta", "jsonb"), plain("digest", "text"), plain("etag", "text"), plain("last_modified", "text"), plain("items", "jsonb"),
	plain("body", "text"), plain("headers", "jsonb"), plain("text", "text"),
}

const (
	stagingTable = "seine_staging"
	stagingSQL   = "CREATE TEMPORARY TABLE " + stagingTable + " (n integer, url text, content boolean, line text) ON COMMIT DELETE ROWS"
)

var stagingColumns = []string{"n", "url", "content", "line"}

func createSQL(table string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "CREATE TABLE %s (url text PRIMARY KEY", table)
	for _, c := range columns {
		fmt.Fprintf(&b, ", %q %s", c.name, c.kind)
	}
	b.WriteString(", rest jsonb)")
	return b.String()
}

// ofFetch are the columns of the last fetch, whatever its outcome. All others describe
// the content, and stay as they are after a fetch that brought none.
var ofFetch = []string{"v", "fetch_status", "fetched_at", "seconds", "error_class", "error_text", "attempts"}

// moveSQL moves the records with content from the staging table to table: of several
// of one URL the last one.
func moveSQL(table string) string {
	set := func(c column) string { return "EXCLUDED." + quoted(c) }
	return move(table, "content", columns, set, "EXCLUDED.rest")
}

// touchSQL moves the records without content, but for those that a later one with
// content follows.
func touchSQL(table string) string {
	const last = "NOT content AND NOT EXISTS (SELECT FROM pg_temp." + stagingTable + " AS c WHERE c.url = s.url AND c.content AND c.n > s.n)"
	all := slices.Clone(columns)
	for i, c := range all {
		if c.name == "status" { // of the content, which is not known
			all[i].from = "NULL::integer"
		}
	}
	set := func(c column) string {
		if slices.Contains(ofFetch, c.name) {
			return "EXCLUDED." + quoted(c)
		}
		return fmt.Sprintf("CASE WHEN t.status IS NULL THEN EXCLUDED.%[1]s ELSE t.%[1]s END", quoted(c))
	}
	return move(table, last, all, set, "nullif((coalesce(t.rest, '{}') - 'unchanged') || coalesce(EXCLUDED.rest, '{}'), '{}')")
}

func quoted(c column) string { return `"` + c.name + `"` }

// move is a statement that moves rows of the staging table to table t; set makes the
// new value of a column of a URL that is there.
func move(table, which string, columns []column, set func(column) string, rest string) string {
	var names, values, sets, keys strings.Builder
	keys.WriteString("url,error")
	for _, c := range columns {
		fmt.Fprintf(&names, ", %q", c.name)
		fmt.Fprintf(&values, ", %s", c.from)
		fmt.Fprintf(&sets, ", %q = %s", c.name, set(c))
		keys.WriteString("," + c.name)
	}
	return fmt.Sprintf(`INSERT INTO %s AS t (url, rest%s)
SELECT DISTINCT ON (url) url, nullif(j - '{%s}'::text[], '{}')%s
FROM (SELECT n, url, line::jsonb AS j FROM pg_temp.%s AS s WHERE %s) AS s
ORDER BY url, n DESC
ON CONFLICT (url) DO UPDATE SET rest = %s%s`, table, names.String(), keys.String(), values.String(), stagingTable, which, rest, sets.String())
}

// createRefusedSQL makes the table of records that the other one cannot hold.
func createRefusedSQL(table string) string {
	return fmt.Sprintf(`CREATE TABLE IF NOT EXISTS %s (url text, "column" text, error text, refused_at timestamptz DEFAULT now(), record text)`, table)
}
