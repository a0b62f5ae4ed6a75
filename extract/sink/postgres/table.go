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
	plain("v", "integer"), plain("status", "integer"), plain("fetched_at", "timestamptz"), plain("depth", "bigint"),
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
	stagingSQL   = "CREATE TEMPORARY TABLE " + stagingTable + " (n integer, url text, line text) ON COMMIT DELETE ROWS"
)

var stagingColumns = []string{"n", "url", "line"}

func createSQL(table string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "CREATE TABLE %s (url text PRIMARY KEY", table)
	for _, c := range columns {
		fmt.Fprintf(&b, ", %q %s", c.name, c.kind)
	}
	b.WriteString(", rest jsonb)")
	return b.String()
}

// kept are columns whose values a 304 leaves as they are: what is known of the page.
var kept = []string{"content_type", "charset", "title", "digest", "etag", "last_modified", "items", "body", "headers", "text"}

// moveSQL moves the staging table to table: of several records of one URL the
// last one.
func moveSQL(table string) string {
	var names, values, sets, keys strings.Builder
	keys.WriteString("url,error")
	for _, c := range columns {
		fmt.Fprintf(&names, ", %q", c.name)
		fmt.Fprintf(&values, ", %s", c.from)
		switch {
		case slices.Contains(kept, c.name): // an answer that the page is as it was says nothing of it
			fmt.Fprintf(&sets, ", %q = CASE WHEN EXCLUDED.status = 304 AND EXCLUDED.rest ? 'unchanged' THEN coalesce(EXCLUDED.%q, t.%q) ELSE EXCLUDED.%q END", c.name, c.name, c.name, c.name)
		default:
			fmt.Fprintf(&sets, ", %q = EXCLUDED.%q", c.name, c.name)
		}
		keys.WriteString("," + c.name)
	}
	return fmt.Sprintf(`INSERT INTO %s AS t (url, rest%s)
SELECT DISTINCT ON (url) url, nullif(j - '{%s}'::text[], '{}')%s
FROM (SELECT n, url, line::jsonb AS j FROM pg_temp.%s) AS s
ORDER BY url, n DESC
ON CONFLICT (url) DO UPDATE SET rest = CASE WHEN EXCLUDED.status = 304 AND EXCLUDED.rest ? 'unchanged' THEN coalesce(t.rest, '{}') || EXCLUDED.rest ELSE EXCLUDED.rest END%s`, table, names.String(), keys.String(), values.String(), stagingTable, sets.String())
}

// rescueSQL moves what jsonb cannot be made of: the record's text goes to rest,
// the other columns are null.
func rescueSQL(table string) string {
	var sets strings.Builder
	for _, c := range columns {
		fmt.Fprintf(&sets, ", %q = NULL", c.name)
	}
	return fmt.Sprintf(`INSERT INTO %s (url, rest)
SELECT url, jsonb_build_object('record', line) FROM pg_temp.%s
ON CONFLICT (url) DO UPDATE SET rest = EXCLUDED.rest%s`, table, stagingTable, sets.String())
}
