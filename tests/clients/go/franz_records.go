package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

var franzCodecs = map[string]kgo.CompressionCodec{
	"none":   kgo.NoCompression(),
	"gzip":   kgo.GzipCompression(),
	"snappy": kgo.SnappyCompression(),
	"lz4":    kgo.Lz4Compression(),
	"zstd":   kgo.ZstdCompression(),
}

var franzAcks = map[string]kgo.Acks{"0": kgo.NoAck(), "1": kgo.LeaderAck(), "all": kgo.AllISRAcks()}

// asGiven is a partitioner that uses a record's partition if set, and the library's partitioner otherwise.
type asGiven struct{ own kgo.Partitioner }

type asGivenForTopic struct{ kgo.TopicPartitioner }

func (p asGiven) ForTopic(topic string) kgo.TopicPartitioner {
	return asGivenForTopic{p.own.ForTopic(topic)}
}

func (p asGivenForTopic) RequiresConsistency(sent *kgo.Record) bool {
	return sent.Partition >= 0 || p.TopicPartitioner.RequiresConsistency(sent)
}

func (p asGivenForTopic) Partition(sent *kgo.Record, count int) int {
	if sent.Partition >= 0 {
		return int(sent.Partition)
	}
	return p.TopicPartitioner.Partition(sent, count)
}

func franzProducer() []kgo.Opt {
	return []kgo.Opt{
		kgo.RecordPartitioner(asGiven{kgo.StickyKeyPartitioner(nil)}),
		kgo.ProducerLinger(20 * time.Millisecond),
		kgo.AllowAutoTopicCreation(),
	}
}

func franzRecords(asked *request) []*kgo.Record {
	made := []*kgo.Record{}
	for _, one := range asked.Records {
		next := &kgo.Record{Topic: asked.Topic, Key: toBytes(one.Key), Value: toBytes(one.Value), Partition: -1}
		if one.Partition != nil {
			next.Partition = *one.Partition
		}
		if one.Timestamp != nil {
			next.Timestamp = time.UnixMilli(*one.Timestamp)
		}
		for _, each := range one.Headers {
			next.Headers = append(next.Headers, kgo.RecordHeader{Key: each.name, Value: toBytes(each.value)})
		}
		made = append(made, next)
	}
	return made
}

// sendFranz sends the records and waits; results are in the order of the records.
func sendFranz(client *kgo.Client, records []*kgo.Record) []error {
	errs := make([]error, len(records))
	places := make(map[*kgo.Record]int, len(records))
	for index, each := range records {
		places[each] = index
	}
	// RecordDeliveryTimeout is not suitable, because it counts from the records' timestamps.
	limit, cancel := within(30 * time.Second)
	defer cancel()
	for _, result := range client.ProduceSync(limit, records...) {
		errs[places[result.Record]] = result.Err
	}
	return errs
}

func (f *franz) produce(asked *request) (answer, error) {
	options := append(
		franzProducer(),
		kgo.ProducerBatchCompression(franzCodecs[asked.Codec]),
		kgo.RequiredAcks(franzAcks[asked.Acks]),
		kgo.ProducerBatchMaxBytes(int32(asked.MaxRequestBytes)),
	)
	if !asked.Idempotent {
		options = append(options, kgo.DisableIdempotentWrite())
	}
	client, err := f.open(asked.Bootstrap, options...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	records := franzRecords(asked)
	placed := func(index int) []any { return place(records[index].Partition, records[index].Offset) }
	return outcomes(sendFranz(client, records), franzCode, placed), nil
}

func (f *franz) consume(asked *request) (answer, error) {
	starts := map[int32]kgo.Offset{}
	for _, number := range asked.Partitions.numbers {
		switch asked.Start.named {
		case "earliest":
			starts[number] = kgo.NewOffset().AtStart()
		case "latest":
			starts[number] = kgo.NewOffset().AtEnd()
		default:
			starts[number] = kgo.NewOffset().At(asked.Start.number)
		}
	}
	resets := map[string]kgo.Offset{
		"none":     kgo.NoResetOffset(),
		"earliest": kgo.NewOffset().AtStart(),
		"latest":   kgo.NewOffset().AtEnd(),
	}
	isolation := kgo.ReadUncommitted()
	if asked.readCommitted() {
		isolation = kgo.ReadCommitted()
	}
	client, err := f.open(
		asked.Bootstrap,
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{asked.Topic: starts}),
		kgo.ConsumeResetOffset(resets[asked.Reset]),
		kgo.FetchIsolationLevel(isolation),
	)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	limit, cancel := within(asked.timeout())
	defer cancel()
	found := []any{}
	for len(found) < asked.Count && limit.Err() == nil {
		fetches := client.PollFetches(limit)
		for _, failed := range fetches.Errors() {
			if !errors.Is(failed.Err, context.DeadlineExceeded) {
				return nil, fmt.Errorf("%s-%d: %w", failed.Topic, failed.Partition, failed.Err)
			}
		}
		fetches.EachRecord(func(one *kgo.Record) { found = append(found, franzShown(one)) })
	}
	return answer{"records": found}, nil
}

func franzShown(one *kgo.Record) answer {
	headers := []any{}
	for _, each := range one.Headers {
		headers = append(headers, []any{each.Key, toText(each.Value)})
	}
	return answer{
		"partition":      one.Partition,
		"offset":         one.Offset,
		"key":            toText(one.Key),
		"value":          toText(one.Value),
		"timestamp":      one.Timestamp.UnixMilli(),
		"timestamp_type": one.Attrs.TimestampType(),
		"headers":        headers,
	}
}
