// Package postgres keeps records as rows of a table of PostgreSQL, one a URL.
//
// Workers encode records as JSON and add them to a sink.Queue. Its committer
// copies a batch of them (COPY) into a temporary table and moves them from there
// to the table with one INSERT … ON CONFLICT (url) DO UPDATE, in one transaction:
// a record is in the sink when that is committed. A later record of the URL
// replaces the row, so a batch whose COMMIT went unanswered is simply resent. While the
// server is away, full or refuses, the queue retries on new connections.
//
// The table has a column for each plain field of a record, jsonb for meta, items
// and headers, and the column rest for whatever else records have or will have.
// Open makes it, or makes sure that one that is there has these columns and a
// unique url; columns beside them, indexes and views are the user's.
//
// The columns describe the last content of the URL, status among them. A fetch that
// fails, or an answer that the page is as it was, changes only the columns of the
// fetch: fetch_status, fetched_at, seconds, attempts and the error. So status is NULL
// until a fetch brings content.
//
// PostgreSQL's text cannot hold NUL: it becomes U+FFFD. A record that the server cannot
// store for another reason (a column too narrow, a body beyond what jsonb holds, a
// constraint of the user's) goes to the table TABLE_refused, with the field and the
// server's error, and the log names it; the others go on.
package postgres

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"seine/extract/sink"
)

// Config of a Sink. The zero value of a field is the default it names.
type Config struct {
	// Address is a URL or DSN of libpq, postgres://user@host/database; what it
	// leaves out comes from PGHOST and the like, a password from PGPASSWORD or
	// ~/.pgpass. Required.
	Address string
	// Password, if there is one, goes before all others.
	Password string
	// Table is its name, with a schema or without. Default pages.
	Table string
	// Fields are the optional fields to keep. Default none.
	Fields sink.Fields
	// BatchRows is how many rows a batch has at most. Default 1,000.
	BatchRows int
	// MaxPending is how many bytes may wait before Write blocks. Default 64 MB.
	MaxPending int64
	// Drop makes the sink drop records that find no room.
	Drop bool
	// Log gets the records that the table cannot hold. Nil: discarded.
	Log *slog.Logger
}

const (
	defaultTable   = "pages"
	defaultRows    = 1000
	connectTimeout = 10 * time.Second
	commitTimeout  = time.Minute // of a batch; a server that needs longer counts as dead
	maxURL         = 2600        // bytes that an index of PostgreSQL holds for sure
)

// Parse reads an address as of the command line: a URL whose query may also have
// table, and password_file for a file with the password. Nothing is connected to.
func Parse(address string) (Config, error) {
	var c Config
	u, err := url.Parse(address)
	if err != nil {
		return c, errors.New("postgres: the address is no URL such as postgres://user@host/database?table=pages") // err would show it
	}
	q := u.Query()
	c.Table = q.Get("table")
	if file := q.Get("password_file"); file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return c, fmt.Errorf("postgres: password_file: %w", err)
		}
		c.Password = strings.TrimRight(string(text), "\r\n")
	}
	q.Del("table")
	q.Del("password_file")
	u.RawQuery = q.Encode()
	c.Address = u.String()
	_, err = c.connection()
	return c, err
}

// connection is what pgx makes of c.
func (c *Config) connection() (*pgx.ConnConfig, error) {
	cc, err := pgx.ParseConfig(c.Address)
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err) // without the password
	}
	if c.Password != "" {
		cc.Password = c.Password
	}
	if cc.ConnectTimeout == 0 || cc.ConnectTimeout > connectTimeout {
		cc.ConnectTimeout = connectTimeout
	}
	if cc.RuntimeParams["application_name"] == "" {
		cc.RuntimeParams["application_name"] = "seine"
	}
	return cc, nil
}

// Sink keeps records in a table. It is safe for concurrent use.
type Sink struct {
	cfg      Config
	pg       *pgx.ConnConfig
	table    string // quoted
	refused  string // table beside it, of records that it cannot hold, quoted
	move     string // from the staging table
	touch    string // the same of records without content
	queue    *sink.Queue
	unfit    atomic.Int64 // records that the table could not hold
	conn     *pgx.Conn    // the committer's, nil when there is none
	rows     rows         // the committer's
	blamed   string       // column of the last refused record in the log; the committer's
	blamedAt time.Time
	pool     sync.Pool // *scratch, for encoding
}

var _ sink.Sink = (*Sink)(nil)

// Open connects, makes or checks the table, and starts the sink. What is wrong
// with the address, the password or the table shows here.
func Open(ctx context.Context, cfg Config) (*Sink, error) {
	if cfg.Table == "" {
		cfg.Table = defaultTable
	}
	if cfg.BatchRows == 0 {
		cfg.BatchRows = defaultRows
	}
	if cfg.BatchRows < 0 || cfg.MaxPending < 0 {
		return nil, errors.New("postgres: BatchRows and MaxPending cannot be negative")
	}
	pg, err := cfg.connection()
	if err != nil {
		return nil, err
	}
	s := &Sink{cfg: cfg, pg: pg, table: pgx.Identifier(strings.Split(cfg.Table, ".")).Sanitize()}
	s.move, s.touch = moveSQL(s.table), touchSQL(s.table)
	name := strings.Split(cfg.Table, ".")
	name[len(name)-1] += "_refused"
	s.refused = pgx.Identifier(name).Sanitize()
	if cfg.Log == nil {
		s.cfg.Log = slog.New(slog.DiscardHandler)
	}
	s.pool.New = func() any { return new(scratch) }
	if err := s.connect(ctx); err != nil {
		return nil, err
	}
	if err := s.prepareTable(ctx); err != nil {
		return nil, errors.Join(err, s.conn.Close(ctx))
	}
	s.queue = sink.NewQueue(sink.QueueConfig{Name: "postgres", Commit: s.commit, End: s.disconnect, BatchLen: cfg.BatchRows, MaxPending: cfg.MaxPending, Drop: cfg.Drop})
	return s, nil
}

// connect opens a connection with a staging table of its own.
func (s *Sink) connect(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, s.pg)
	if err != nil {
		return fmt.Errorf("postgres: %w", err)
	}
	if _, err := conn.Exec(ctx, stagingSQL); err != nil {
		return errors.Join(fmt.Errorf("postgres: making a temporary table: %w", err), conn.Close(ctx))
	}
	s.conn = conn
	return nil
}

// prepareTable makes the table if there is none, and checks what is there.
func (s *Sink) prepareTable(ctx context.Context) error {
	var there bool
	if err := s.conn.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL", s.table).Scan(&there); err != nil {
		return fmt.Errorf("postgres: %w", err)
	}
	if !there {
		if _, err := s.conn.Exec(ctx, createSQL(s.table)); err != nil && !isMade(err) {
			return fmt.Errorf("postgres: making table %s: %w", s.table, err)
		}
	}
	if _, err := s.conn.Exec(ctx, "EXPLAIN "+s.touch); err != nil {
		return fmt.Errorf("postgres: table %s does not fit: %w; it needs a unique url and the columns of: %s", s.table, err, createSQL(s.table))
	}
	return nil
}

// isMade reports whether a table could not be made because another fetcher made it.
func isMade(err error) bool {
	state := sqlState(err)
	return state == "42P07" || state == "23505"
}

// sqlState is the SQLSTATE of an error of the server, else "".
func sqlState(err error) string {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pg.Code
	}
	return ""
}

// scratch is memory to encode a record with.
type scratch struct{ line, clean []byte }

const keepScratch = 2 << 20

// Write implements sink.Sink.
func (s *Sink) Write(r *sink.Record, done func(error)) {
	w := s.pool.Get().(*scratch)
	w.line = r.AppendJSON(w.line[:0], s.cfg.Fields)
	w.clean = append(w.clean[:0], withoutContent)
	if r.HasContent() {
		w.clean[0] = withContent
	}
	w.clean = appendReadable(w.clean, w.line)
	s.queue.AddEntry([]byte(keyOf(r)), w.clean, done)
	if cap(w.line) <= keepScratch && cap(w.clean) <= keepScratch {
		s.pool.Put(w)
	}
}

// The first byte of an entry's value reports whether its record has content.
const (
	withoutContent = '0'
	withContent    = '1'
)

// keyOf is the URL of a record, with what tells requests with that URL apart behind it, as
// the index can hold it: one that is longer is cut, with its SHA-256 behind it. Only URLs
// that could not be asked for are so long.
func keyOf(r *sink.Record) string {
	url := strings.ReplaceAll(strings.ToValidUTF8(r.URL, "\ufffd"), "\x00", "\ufffd")
	if r.Request != "" {
		url += "#request-" + r.Request
	}
	if len(url) <= maxURL {
		return url
	}
	sum := sha256.Sum256([]byte(url))
	return strings.ToValidUTF8(url[:maxURL-100], "") + "#sha256-" + hex.EncodeToString(sum[:])
}

// appendReadable appends JSON of AppendJSON with U+FFFD for NUL, which jsonb refuses.
func appendReadable(dst, line []byte) []byte {
	for {
		i := bytes.IndexByte(line, '\\')
		if i < 0 {
			return append(dst, line...)
		}
		n := 2
		if bytes.HasPrefix(line[i:], []byte(`\u0000`)) {
			n = len(`\u0000`)
			dst = append(append(dst, line[:i]...), `\ufffd`...)
		} else {
			dst = append(dst, line[:i+n]...)
		}
		line = line[i+n:]
	}
}

// commit moves a batch into the table.
func (s *Sink) commit(ctx context.Context, b *sink.Batch) error {
	ctx, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	if s.conn == nil || s.conn.IsClosed() {
		if err := s.connect(ctx); err != nil {
			return err
		}
	}
	return s.store(ctx, b, 0, b.Len())
}

// store keeps rows lo..hi-1. What the server cannot store is found by halving.
func (s *Sink) store(ctx context.Context, b *sink.Batch, lo, hi int) error {
	err := s.upsert(ctx, b, lo, hi, nil)
	if !unstorable(err) {
		return err
	}
	if hi-lo == 1 {
		return s.refuse(ctx, b, lo, err)
	}
	mid := (lo + hi) / 2
	if err := s.store(ctx, b, lo, mid); err != nil {
		return err
	}
	return s.store(ctx, b, mid, hi)
}

// unstorable reports whether the server refused the data: classes 22 (data
// exception), 23 (integrity constraint violation) and 54 (program limit exceeded), and
// more memory than it gives for one value.
func unstorable(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return false
	}
	class := pg.Code[:min(2, len(pg.Code))]
	return class == "22" || class == "23" || class == "54" || pg.Code == "XX000" && strings.Contains(pg.Message, "invalid memory alloc request size")
}

// refusedEvery is how often refused records of one column are logged at most: a column
// that is too narrow may refuse every record.
const refusedEvery = time.Minute

// refuse puts a row that the table cannot hold into the table beside it, with its text
// if that table can store it.
func (s *Sink) refuse(ctx context.Context, b *sink.Batch, i int, why error) error {
	url, value := b.Entry(i)
	column, err := s.blame(ctx, b, i, why)
	if err != nil {
		return err
	}
	logs := column != s.blamed || time.Since(s.blamedAt) >= refusedEvery
	if logs {
		s.cfg.Log.Error("PostgreSQL cannot store a record; it goes to the table of refused ones", "url", string(url), "column", column, "table", s.refused, "bytes", len(value), "err", why, "before", s.unfit.Load())
		s.blamed, s.blamedAt = column, time.Now()
	}
	insert := func(text any) error {
		sql := fmt.Sprintf(`INSERT INTO %s (url, "column", error, record) VALUES ($1, $2, $3, $4)`, s.refused)
		_, err := s.conn.Exec(ctx, sql, string(url), column, why.Error(), text)
		return err
	}
	err = insert(string(value[1:]))
	if sqlState(err) == "42P01" { // there is no such table
		if _, err = s.conn.Exec(ctx, createRefusedSQL(s.refused)); err == nil || isMade(err) {
			err = insert(string(value[1:]))
		}
	}
	if unstorable(err) {
		err = insert(nil)
	}
	if sqlState(err) == "42501" { // a right is missing
		err = nil
		if logs {
			s.cfg.Log.Error("the refused record is lost: the user may not write to the table; create it and grant INSERT", "url", string(url), "sql", createRefusedSQL(s.refused))
		}
	}
	if err == nil {
		s.unfit.Add(1)
	}
	return s.dropBroken(err)
}

// hugeRow is how many bytes a row has at least whose longest column is to blame.
const hugeRow = 16 << 20

// blame names the column for which the server refuses a row: as the server does, or
// the one without which it takes the row; "" where there is none.
func (s *Sink) blame(ctx context.Context, b *sink.Batch, i int, why error) (string, error) {
	if pg, ok := errors.AsType[*pgconn.PgError](why); ok && pg.ColumnName != "" {
		return pg.ColumnName, nil
	}
	_, value := b.Entry(i)
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(value[1:], &fields); err != nil {
		return "", nil // AppendJSON makes none such
	}
	names := slices.Sorted(maps.Keys(fields))
	if len(value) >= hugeRow {
		return slices.MaxFunc(names, func(a, b string) int { return len(fields[a]) - len(fields[b]) }), nil
	}
	for _, name := range names {
		value := fields[name]
		delete(fields, name)
		line, err := json.Marshal(fields)
		fields[name] = value
		if err == nil {
			err = s.upsert(ctx, b, i, i+1, line)
		}
		switch {
		case errors.Is(err, errTried):
			return name, nil
		case !unstorable(err):
			return "", err
		}
	}
	return "", nil
}

// errTried: the row would be stored.
var errTried = errors.New("postgres: tried")

// upsert copies rows into the staging table and moves them to the table. With try, a
// line that takes the place of the row's, nothing is kept: the error is errTried where
// all went well.
func (s *Sink) upsert(ctx context.Context, b *sink.Batch, lo, hi int, try []byte) (err error) {
	tx, err := s.conn.Begin(ctx)
	if err != nil {
		return s.dropBroken(err)
	}
	s.rows = rows{b: b, i: lo - 1, end: hi, try: try}
	_, err = tx.CopyFrom(ctx, pgx.Identifier{"pg_temp", stagingTable}, stagingColumns, &s.rows)
	if err == nil {
		_, err = tx.Exec(ctx, s.move)
	}
	if err == nil && s.rows.without > 0 {
		_, err = tx.Exec(ctx, s.touch)
	}
	s.rows.b = nil
	if err == nil && try != nil {
		err = errTried
	}
	if err == nil {
		err = tx.Commit(ctx)
	} else if rerr := tx.Rollback(ctx); rerr != nil && !unstorable(err) {
		err = errors.Join(err, rerr)
	}
	if err == errTried {
		return err
	}
	return s.dropBroken(err)
}

// dropBroken closes the connection where err may have broken it, and returns err. An
// error that the server reported leaves the connection as it is.
func (s *Sink) dropBroken(err error) error {
	if err != nil && sqlState(err) == "" {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = s.conn.Close(ctx)
		s.conn = nil
	}
	return err
}

// rows is a part of a batch as COPY reads it.
type rows struct {
	b       *sink.Batch
	i, end  int
	values  [4]any
	without int    // records without content so far
	try     []byte // the line of the only row instead of its own
}

func (r *rows) Next() bool { r.i++; return r.i < r.end }
func (r *rows) Err() error { return nil }

func (r *rows) Values() ([]any, error) {
	key, value := r.b.Entry(r.i)
	content := value[0] == withContent
	if !content {
		r.without++
	}
	line := value[1:]
	if r.try != nil {
		line = r.try
	}
	r.values = [4]any{int32(r.i), key, content, line}
	return r.values[:], nil
}

// Err is why nothing can be written just now, or nil. Records wait meanwhile.
func (s *Sink) Err() error { return s.queue.Err() }

// QueueStats returns the counts of the queue, and of records that the table could not
// hold.
func (s *Sink) QueueStats() sink.QueueStats {
	st := s.queue.Stats()
	st.Unfit = s.unfit.Load()
	return st
}

// Close sends what waits, trying once, and closes the connection.
func (s *Sink) Close() error { return s.queue.Close() }

func (s *Sink) disconnect() error {
	if s.conn != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = s.conn.Close(ctx) // all is committed
	}
	return nil
}
