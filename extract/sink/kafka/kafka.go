// Package kafka sends records to a topic of Kafka, keyed by site, so that those of
// one site stand in one partition.
//
// Workers encode records as JSON and add them to a sink.Queue, whose committer
// produces a batch of them and waits until all replicas in sync have each. The
// producer is idempotent: what it resends after a lost reply, a broker's death
// or a new leader is in the topic once. The sink produces a record a second time only
// where a broker refused it. A crash of the fetcher repeats pages that were not settled.
//
// A topic takes messages up to a size (max.message.bytes). A record that is larger
// goes without its optional fields, and if need be without all that pages and feeds
// may make large; the header LeftOut of the message has the size of the whole record.
package kafka

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"seine/extract/sink"
)

// LeftOut is the header of messages whose record was too large. Its value is the
// size of the whole record in bytes.
const LeftOut = "seine-left-out"

const (
	batchLen        = 5000 // records; the client buffers twice as many
	dialTimeout     = 5 * time.Second
	openTimeout     = 15 * time.Second
	ackPatience     = 5 * time.Second // without an answer, after which the commit fails
	defaultMaxBytes = 1_000_012       // of a broker
	mostBytes       = 64 << 20        // below what the client sends in one
	framing         = 512             // bytes of a batch and of a message beside key and value, at most
	keepScratch     = 2 << 20
)

// Sink sends records to Kafka. It is safe for concurrent use.
type Sink struct {
	cfg      Config
	client   *kgo.Client
	maxBytes atomic.Int32 // of a message
	trouble  trouble
	queue    *sink.Queue
	leftOut  atomic.Int64 // records that something was left out of
	pool     sync.Pool    // *scratch

	// The committer's:
	stale   bool        // the topic was recreated, and nothing is acknowledged since
	topic   [16]byte    // ID, as it was found last; zero where brokers give none
	batch   *sink.Batch // in hand, until all of it is acknowledged
	unsent  []*kgo.Record
	open    int // sent and not answered
	answers chan answer
}

// answer is what became of a message.
type answer struct {
	record *kgo.Record
	err    error
}

var _ sink.Sink = (*Sink)(nil)

// trouble keeps why brokers do not answer, for the client retries silently: the last
// error of connecting, which explains more than a connection's end, or else the first of
// reading.
type trouble struct{ kept atomic.Pointer[error] }

func (t *trouble) OnBrokerConnect(_ kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	if err != nil {
		t.kept.Store(&err)
	}
}

func (t *trouble) OnBrokerRead(b kgo.BrokerMetadata, _ int16, _ int, _, _ time.Duration, err error) {
	if err != nil {
		err = fmt.Errorf("reading from %s: %w", net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port))), err)
		t.kept.CompareAndSwap(nil, &err)
	}
}

// pop returns the error kept and forgets it.
func (t *trouble) pop() error {
	if err := t.kept.Swap(nil); err != nil {
		return *err
	}
	return errors.New("no broker gave a reason")
}

// Open connects, makes sure that the topic is there, and starts the sink. What is
// wrong with the address, the password or the topic shows here.
func Open(ctx context.Context, cfg Config) (*Sink, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	opts, err := cfg.options()
	if err != nil {
		return nil, err
	}
	s := &Sink{cfg: cfg, answers: make(chan answer, batchLen)}
	s.maxBytes.Store(defaultMaxBytes)
	s.pool.New = func() any { return new(scratch) }
	s.client, err = kgo.NewClient(append(opts,
		kgo.WithHooks(&s.trouble), kgo.UnknownTopicRetries(-1), kgo.ProducerLinger(0), kgo.MaxBufferedRecords(2*batchLen),
		kgo.ProducerBatchMaxBytesFn(func(string) int32 { return s.maxBytes.Load() }),
		kgo.ProducerBatchCompression(kgo.ZstdCompression(), kgo.SnappyCompression(), kgo.NoCompression()))...)
	if err != nil {
		return nil, fmt.Errorf("kafka: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	if err := s.look(ctx); err != nil {
		s.client.Close()
		return nil, fmt.Errorf("kafka: %w", err)
	}
	s.queue = sink.NewQueue(sink.QueueConfig{Name: "kafka", Commit: s.commit, End: func() error { s.client.Close(); return nil }, BatchLen: batchLen, MaxPending: cfg.MaxPending, Drop: cfg.Drop})
	return s, nil
}

// look finds the topic, and how large its messages may be.
func (s *Sink) look(ctx context.Context) error {
	if err := s.client.Ping(ctx); err != nil {
		return fmt.Errorf("no broker of %s answers: %w", strings.Join(s.cfg.Brokers, ","), err)
	}
	meta := kmsg.NewPtrMetadataRequest()
	topic := kmsg.NewMetadataRequestTopic()
	topic.Topic = &s.cfg.Topic
	meta.Topics = append(meta.Topics, topic)
	answer, err := meta.RequestWith(ctx, s.client)
	if err == nil && len(answer.Topics) == 1 {
		err = kerr.ErrorForCode(answer.Topics[0].ErrorCode)
	}
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		return fmt.Errorf("there is no topic %s: make it, with the partitions and the retention that its readers need", s.cfg.Topic)
	}
	if err != nil {
		return fmt.Errorf("topic %s: %w", s.cfg.Topic, err)
	}
	s.topic = answer.Topics[0].TopicID
	const name = "max.message.bytes"
	describe := kmsg.NewPtrDescribeConfigsRequest()
	resource := kmsg.NewDescribeConfigsRequestResource()
	resource.ResourceType, resource.ResourceName, resource.ConfigNames = kmsg.ConfigResourceTypeTopic, s.cfg.Topic, []string{name}
	describe.Resources = append(describe.Resources, resource)
	configs, err := describe.RequestWith(ctx, s.client)
	if err != nil {
		return fmt.Errorf("asking for %s: %w", name, err)
	}
	for _, r := range configs.Resources { // none where the user may not ask: the default of brokers serves
		for _, c := range r.Configs {
			if c.Name == name && c.Value != nil {
				if n, err := strconv.Atoi(*c.Value); err == nil {
					s.maxBytes.Store(int32(min(max(n, 2*framing), mostBytes)))
				}
			}
		}
	}
	return nil
}

// scratch is memory to encode a record with.
type scratch struct{ key, line []byte }

// The first byte of a queue's key reports whether something was left out; the value
// begins with the whole size then, up to a newline.
const (
	whole   = 'w'
	reduced = 'r'
)

// Write implements sink.Sink.
func (s *Sink) Write(r *sink.Record, done func(error)) {
	w := s.pool.Get().(*scratch)
	w.key = append(append(w.key[:0], whole), r.Site...)
	w.line = r.AppendJSON(w.line[:0], s.cfg.Fields)
	if room := int(s.maxBytes.Load()) - framing - len(r.Site); len(w.line) > room {
		w.key[0] = reduced
		size := len(w.line)
		w.line = appendReduced(w.line[:0], r, size, room)
		if s.leftOut.Add(1) == 1 && s.cfg.Log != nil {
			s.cfg.Log.Warn("records are too large for the topic and go without their largest fields; their field left_out has the whole size. Raise max.message.bytes of the topic, or ask for fewer --fields",
				"topic", s.cfg.Topic, "url", r.URL, "bytes", size, "room", room)
		}
	}
	s.queue.AddEntry(w.key, w.line, done)
	if cap(w.line) <= keepScratch {
		s.pool.Put(w)
	}
}

// appendReduced appends the size of the whole record, a newline, and as much of it
// as has room, with its field left_out.
func appendReduced(dst []byte, r *sink.Record, size, room int) []byte {
	dst = appendSmaller(dst, r, size, room-len(`,"left_out":`)-20)
	dst = append(dst[:len(dst)-1], `,"left_out":`...)
	return append(strconv.AppendInt(dst, int64(size), 10), '}')
}

func appendSmaller(dst []byte, r *sink.Record, size, room int) []byte {
	dst = append(strconv.AppendInt(dst, int64(size), 10), '\n')
	start := len(dst)
	if dst = r.AppendJSON(dst, 0); len(dst)-start <= room {
		return dst
	}
	small := *r
	small.Items, small.Fields, small.Meta, small.Title, small.Location, small.ETag, small.Modified = nil, nil, nil, "", "", "", ""
	small.From, small.Referrer, small.Price = "", "", nil
	if r.Error != nil {
		small.Error = &sink.Error{Class: cut(r.Error.Class, 100), Text: cut(r.Error.Text, 100)}
	}
	small.ContentType, small.Charset = cut(r.ContentType, 100), cut(r.Charset, 100)
	if dst = small.AppendJSON(dst[:start], 0); len(dst)-start <= room {
		return dst
	}
	small.URL = cut(r.URL, max(room-2000, 0)/6) // a byte may become six
	return small.AppendJSON(dst[:start], 0)
}

// cut is the first n bytes of text, or a few less.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "")
}

// message is an entry of a batch as the client takes it.
func message(key, value []byte) *kgo.Record {
	r := &kgo.Record{Key: key[1:], Value: value}
	if key[0] == reduced {
		size, line, _ := strings.Cut(string(value), "\n")
		r.Value, r.Headers = []byte(line), []kgo.RecordHeader{{Key: LeftOut, Value: []byte(size)}}
	}
	return r
}

// commit produces a batch and waits for it. A retry goes on waiting, and resends only
// what was refused.
func (s *Sink) commit(ctx context.Context, b *sink.Batch) error {
	if s.batch != b {
		s.batch = b
		s.trouble.kept.Store(nil) // it was of a batch before
		for i := range b.Len() {
			s.unsent = append(s.unsent, message(b.Entry(i)))
		}
	}
	for _, r := range s.unsent {
		s.open++
		s.client.Produce(context.Background(), r, func(r *kgo.Record, err error) { s.answers <- answer{r, err} }) // ctx would cancel what may be there
	}
	clear(s.unsent)
	s.unsent = s.unsent[:0]
	timer := time.NewTimer(ackPatience)
	defer timer.Stop()
	var refused error
	for s.open > 0 {
		select {
		case a := <-s.answers:
			s.open--
			if a.err != nil {
				refused = a.err
				s.unsent = append(s.unsent, a.record)
			}
		case <-timer.C:
			if s.topicRecreated(ctx) {
				timer.Reset(ackPatience)
				continue
			}
			return fmt.Errorf("%d records of topic %s are not acknowledged: %w", s.open, s.cfg.Topic, s.trouble.pop())
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if errors.Is(refused, kerr.UnknownTopicID) { // the client still has the former one
		s.client.PurgeTopicsFromProducing(s.cfg.Topic)
	}
	if refused != nil {
		return fmt.Errorf("%d records of topic %s were refused: %w", len(s.unsent), s.cfg.Topic, refused)
	}
	s.batch, s.stale = nil, false
	return nil
}

// topicRecreated reports whether the topic was deleted and recreated, and nothing was
// acknowledged since. The client would go on with the old topic: it forgets it, and
// refuses what was not acknowledged.
func (s *Sink) topicRecreated(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, ackPatience)
	defer cancel()
	before := s.topic
	if s.look(ctx) != nil {
		return false
	}
	if s.stale = s.stale || s.topic != before; !s.stale {
		return false
	}
	s.client.PurgeTopicsFromProducing(s.cfg.Topic)
	return true
}

// Err is why nothing can be written just now, or nil. Records wait meanwhile.
func (s *Sink) Err() error { return s.queue.Err() }

// QueueStats returns the counts of the queue, and of records that went without some of
// their fields.
func (s *Sink) QueueStats() sink.QueueStats {
	st := s.queue.Stats()
	st.Unfit = s.leftOut.Load()
	return st
}

// Close sends what waits, trying once, and disconnects.
func (s *Sink) Close() error { return s.queue.Close() }
