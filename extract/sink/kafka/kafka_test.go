package kafka

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"seine/extract/sink"
	"seine/extract/sink/sinktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	topic      = "pages"
	partitions = 3
)

func cluster(t *testing.T, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1), kfake.SeedTopics(partitions, topic)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func open(t *testing.T, c *kfake.Cluster) *Sink {
	t.Helper()
	return openAt(t, c.ListenAddrs()[0])
}

func openAt(t *testing.T, addr string) *Sink {
	t.Helper()
	s, err := Open(t.Context(), Config{Brokers: []string{addr}, Topic: topic, Fields: sink.AllFields})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// messages reads the whole topic.
func messages(t *testing.T, addr string) (all []*kgo.Record) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	list := kmsg.NewPtrListOffsetsRequest()
	of := kmsg.NewListOffsetsRequestTopic()
	of.Topic = topic
	for i := range int32(partitions) {
		p := kmsg.NewListOffsetsRequestTopicPartition()
		p.Partition, p.Timestamp = i, -1 // the end
		of.Partitions = append(of.Partitions, p)
	}
	list.Topics = append(list.Topics, of)
	ends, err := list.RequestWith(ctx, cl)
	if err != nil {
		t.Fatal(err)
	}
	var want int64
	for _, p := range ends.Topics[0].Partitions {
		want += p.Offset
	}
	for int64(len(all)) < want {
		got := cl.PollFetches(ctx)
		if err := got.Err(); err != nil {
			t.Fatal(err)
		}
		all = append(all, got.Records()...)
	}
	return all
}

func urls(t *testing.T, addr string) (all []string) {
	t.Helper()
	for _, m := range messages(t, addr) {
		var r sink.Record
		if err := json.Unmarshal(m.Value, &r); err != nil {
			t.Fatal(err)
		}
		if string(m.Key) != r.Site {
			t.Errorf("%s has key %q", r.URL, m.Key)
		}
		all = append(all, r.URL)
	}
	return all
}

func TestContract(t *testing.T) {
	sinktest.Run(t, func(t *testing.T) sinktest.Target {
		c := cluster(t)
		var broken atomic.Bool
		c.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
			c.KeepControl()
			return nil, net.ErrClosed, broken.Load() // which closes the connection
		})
		return sinktest.Target{
			Open: func(t *testing.T) sink.Sink { return open(t, c) },
			URLs: func(t *testing.T) []string { return urls(t, c.ListenAddrs()[0]) },
			Break: func(t *testing.T) func() {
				broken.Store(true)
				return func() { broken.Store(false) }
			},
		}
	})
}

// lossy is a listener whose connections break now and then, when the broker has
// done what it was asked and answers.
type lossy struct {
	net.Listener
	on     *atomic.Bool
	writes *atomic.Int64
	lost   *atomic.Int64
}

func (l lossy) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return lossyConn{c, l}, err
}

type lossyConn struct {
	net.Conn
	of lossy
}

func (c lossyConn) Write(p []byte) (int, error) {
	if c.of.on.Load() && c.of.writes.Add(1)%4 == 0 {
		c.of.lost.Add(1)
		c.Conn.Close()
		return 0, net.ErrClosed
	}
	return c.Conn.Write(p)
}

// A batch whose answer was lost is resent, and is in the topic once.
func TestLostReplies(t *testing.T) {
	var on atomic.Bool
	var writes, lost atomic.Int64
	c := cluster(t, kfake.ListenFn(func(network, address string) (net.Listener, error) {
		l, err := net.Listen(network, address)
		return lossy{l, &on, &writes, &lost}, err
	}))
	s := open(t, c)
	on.Store(true)
	const n = 300
	done := make(chan error, n)
	for i := range n {
		s.Write(sinktest.Record(i), func(err error) { done <- err })
		if i%10 == 9 {
			for range 10 {
				if err := <-done; err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	on.Store(false)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, u := range urls(t, c.ListenAddrs()[0]) {
		seen[u]++
	}
	for u, k := range seen {
		if k > 1 {
			t.Errorf("%s is there %d times", u, k)
		}
	}
	if len(seen) != n || lost.Load() < 5 {
		t.Errorf("%d of %d records, %d answers were lost", len(seen), n, lost.Load())
	}
}

// A broker that goes away and comes back with what it had is waited for, and
// nothing is missing.
func TestRestart(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	dir := t.TempDir()
	opts := []kfake.Opt{kfake.Ports(port), kfake.DataDir(dir), kfake.SyncWrites()}
	c := cluster(t, opts...)
	s := open(t, c)
	const each, rounds = 100, 3
	done := make(chan error, each*(rounds+1))
	write := func(round int) {
		for i := round * each; i < (round+1)*each; i++ {
			s.Write(sinktest.Record(i), func(err error) { done <- err })
		}
	}
	write(0)
	for round := 1; round <= rounds; round++ {
		c.Close()
		write(round)
		sinktest.Until(t, "Err is a refused connection", func() bool {
			err := s.Err()
			return err != nil && strings.Contains(err.Error(), "connection refused")
		})
		c = cluster(t, opts...)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, u := range urls(t, c.ListenAddrs()[0]) {
		seen[u] = true
	}
	for range each * (rounds + 1) {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	if len(seen) != each*(rounds+1) {
		t.Errorf("%d of %d records", len(seen), each*(rounds+1))
	}
}

// Why a broker does not answer is that it cannot be connected to, whenever the end
// of a connection that stood before is read; by itself that end names its broker.
func TestTrouble(t *testing.T) {
	var of trouble
	broker := kgo.BrokerMetadata{Host: "broker.example", Port: 9092}
	refused := errors.New("connection refused")
	read := func(err error) { of.OnBrokerRead(broker, 0, 0, 0, 0, err) }
	connect := func(err error) { of.OnBrokerConnect(broker, 0, nil, err) }
	for _, step := range []func(){
		func() { read(io.EOF); connect(refused) },
		func() { connect(refused); read(io.EOF); read(nil); connect(nil) },
	} {
		step()
		if err := of.pop(); !errors.Is(err, refused) {
			t.Error(err)
		}
	}
	read(io.EOF)
	if err := of.pop(); !errors.Is(err, io.EOF) || !strings.Contains(err.Error(), "broker.example:9092") {
		t.Error(err)
	}
	if err := of.pop(); errors.Is(err, io.EOF) || errors.Is(err, refused) {
		t.Error("it was reported before: ", err)
	}
}

// limit sets the size of messages of the topic.
func limit(t *testing.T, c *kfake.Cluster, bytes string) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	of := kmsg.NewIncrementalAlterConfigsRequestResource()
	of.ResourceType, of.ResourceName = kmsg.ConfigResourceTypeTopic, topic
	set := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
	set.Name, set.Op, set.Value = "max.message.bytes", kmsg.IncrementalAlterConfigOpSet, &bytes
	of.Configs = append(of.Configs, set)
	req.Resources = append(req.Resources, of)
	resp, err := req.RequestWith(t.Context(), cl)
	if err != nil || resp.Resources[0].ErrorCode != 0 {
		t.Fatal(resp, err)
	}
}

// A topic that is deleted and recreated is found, and gets what was not
// acknowledged.
func TestTopicMadeAgain(t *testing.T) {
	c := cluster(t)
	s := open(t, c)
	kept := make(chan error, 2)
	s.Write(sinktest.Record(0), func(err error) { kept <- err })
	if err := <-kept; err != nil {
		t.Fatal(err)
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	remove, name := kmsg.NewPtrDeleteTopicsRequest(), topic
	of := kmsg.NewDeleteTopicsRequestTopic()
	of.Topic = &name
	remove.TopicNames, remove.Topics = []string{topic}, append(remove.Topics, of)
	if resp, err := remove.RequestWith(t.Context(), cl); err != nil || resp.Topics[0].ErrorCode != 0 {
		t.Fatal(resp, err)
	}
	s.Write(sinktest.Record(1), func(err error) { kept <- err })
	sinktest.Until(t, "Err is that the topic is gone", func() bool { return s.Err() != nil })
	create := kmsg.NewPtrCreateTopicsRequest()
	made := kmsg.NewCreateTopicsRequestTopic()
	made.Topic, made.NumPartitions, made.ReplicationFactor = topic, partitions, 1
	create.Topics = append(create.Topics, made)
	if resp, err := create.RequestWith(t.Context(), cl); err != nil || resp.Topics[0].ErrorCode != 0 {
		t.Fatal(resp, err)
	}
	if err := <-kept; err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	all := messages(t, c.ListenAddrs()[0])
	if len(all) != 1 || !strings.Contains(string(all[0].Value), sinktest.Record(1).URL) {
		t.Errorf("%d messages in the new topic, want the second record", len(all))
	}
}

// What is too large for the topic goes without what made it so, and has a header for that.
func TestTooLarge(t *testing.T) {
	c := cluster(t)
	limit(t, c, "20000")
	s := open(t, c)
	if s.maxBytes.Load() != 20000 {
		t.Errorf("messages up to %d bytes", s.maxBytes.Load())
	}
	long := strings.Repeat("long ", 10_000)
	for i, change := range []func(r *sink.Record){
		func(r *sink.Record) { r.Text = long[:19_000] },
		func(r *sink.Record) { r.Text = long },
		func(r *sink.Record) { r.Items = []sink.Item{{Key: "k", Value: json.RawMessage(`"` + long + `"`)}} },
		func(r *sink.Record) { r.URL += strings.Repeat("\x01", 30_000) },
		func(r *sink.Record) {},
	} {
		r := sinktest.Record(i)
		change(r)
		s.Write(r, func(err error) {
			if err != nil {
				t.Error(err)
			}
		})
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if n := s.QueueStats().Unfit; n != 3 {
		t.Errorf("%d records are counted as reduced, want 3", n)
	}
	all := messages(t, c.ListenAddrs()[0])
	if len(all) != 5 {
		t.Fatalf("%d messages", len(all))
	}
	for i, m := range all { // of one site, so of one partition, in order
		var r sink.Record
		if err := json.Unmarshal(m.Value, &r); err != nil || !strings.HasPrefix(r.URL, sinktest.Record(i).URL) || r.Status != 200 {
			t.Errorf("%d: %v, %.200s", i, err, m.Value)
		}
		size := ""
		if len(m.Headers) == 1 && m.Headers[0].Key == LeftOut {
			size = string(m.Headers[0].Value)
		}
		if reduced := i >= 1 && i <= 3; reduced != (len(size) >= 5) || reduced != strings.HasSuffix(string(m.Value), `,"left_out":`+size+`}`) || len(m.Value) > 20000 {
			t.Errorf("%d: headers %v", i, m.Headers)
		}
		if i == 1 && (r.Title == "" || r.Text != "") || i == 0 && r.Text == "" {
			t.Errorf("%d: %.300s", i, m.Value)
		}
	}
}

// A wrong topic, password or port shows at the start.
func TestOpenRefuses(t *testing.T) {
	c := cluster(t, kfake.EnableSASL(), kfake.Superuser("SCRAM-SHA-512", "u", "geheim"), kfake.Superuser("PLAIN", "p", "geheim"))
	broker := c.ListenAddrs()[0]
	for address, want := range map[string]string{
		"kafka://u@" + broker + "/pages":            "",
		"kafka://p@" + broker + "/pages?sasl=plain": "",
		"kafka://u@" + broker + "/other":            "no topic other",
		"kafka://u:falsch@" + broker + "/pages":     "answers",
		"kafka://127.0.0.1:1/pages":                 "answers",
		"kafka://" + broker:                         "a topic",
		"kafka:///pages":                            "no broker",
		"kafka://h/a/b":                             "a topic",
		"kafka://h/t?x=y":                           "unknown parameter",
		"kafka://h/t?sasl=plain":                    "needs a user",
		"kafka://u@h/t?sasl=md5":                    "no sasl",
		"kafka://h/t?ca=/nowhere":                   "nowhere",
		"kafka://h/t?tls=no":                        "only be true",
		"kafka://u@h/t?password_file=/nowhere":      "nowhere",
	} {
		cfg, err := Parse(address, "geheim")
		if err == nil {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			var s *Sink
			if s, err = Open(ctx, cfg); err == nil {
				err = s.Close()
			}
			cancel()
		}
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "falsch")) {
			t.Errorf("%s: %v", address, err)
		}
	}
	if _, err := Parse("kafka://u@h/t", ""); err == nil || !strings.Contains(err.Error(), "SEINE_KAFKA_PASSWORD") {
		t.Error(err)
	}
	if cfg, err := Parse("kafka://a,b:1,[::1]/t?tls=true", ""); err != nil || strings.Join(cfg.Brokers, " ") != "a:9092 b:1 [::1]:9092" || cfg.TLS == nil {
		t.Error(cfg.Brokers, err)
	}
}
