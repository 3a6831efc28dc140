package main

import (
	"errors"
	"time"

	"github.com/IBM/sarama"
)

var saramaCodecs = map[string]sarama.CompressionCodec{
	"none":   sarama.CompressionNone,
	"gzip":   sarama.CompressionGZIP,
	"snappy": sarama.CompressionSnappy,
	"lz4":    sarama.CompressionLZ4,
	"zstd":   sarama.CompressionZSTD,
}

var saramaAcks = map[string]sarama.RequiredAcks{
	"0": sarama.NoResponse, "1": sarama.WaitForLocal, "all": sarama.WaitForAll,
}

// saramaPartitioner uses the partition of the message if set, and the library's partitioner otherwise.
type saramaPartitioner struct{ sarama.Partitioner }

func newSaramaPartitioner(topic string) sarama.Partitioner {
	return saramaPartitioner{sarama.NewHashPartitioner(topic)}
}

func (p saramaPartitioner) Partition(sent *sarama.ProducerMessage, count int32) (int32, error) {
	if sent.Partition >= 0 {
		return sent.Partition, nil
	}
	return p.Partitioner.Partition(sent, count)
}

// producerConfig returns a configuration that reports the outcome of each message.
func (s *saramas) producerConfig() (*sarama.Config, error) {
	config, err := s.config()
	if err != nil {
		return nil, err
	}
	config.Producer.Partitioner = newSaramaPartitioner
	config.Producer.Return.Successes = true
	config.Producer.Flush.Frequency = 20 * time.Millisecond
	config.Producer.RequiredAcks = sarama.WaitForAll
	return config, nil
}

// idempotent sets the options that sarama requires for idempotent producers.
func idempotent(config *sarama.Config) {
	config.Producer.Idempotent = true
	config.Net.MaxOpenRequests = 1
}

func saramaMessages(asked *request) []*sarama.ProducerMessage {
	made := []*sarama.ProducerMessage{}
	for index, one := range asked.Records {
		next := &sarama.ProducerMessage{Topic: asked.Topic, Partition: -1, Metadata: index}
		if one.Key != nil {
			next.Key = sarama.ByteEncoder(toBytes(one.Key))
		}
		if one.Value != nil {
			next.Value = sarama.ByteEncoder(toBytes(one.Value))
		}
		if one.Partition != nil {
			next.Partition = *one.Partition
		}
		if one.Timestamp != nil {
			next.Timestamp = time.UnixMilli(*one.Timestamp)
		}
		for _, each := range one.Headers {
			named := sarama.RecordHeader{Key: []byte(each.name), Value: toBytes(each.value)}
			next.Headers = append(next.Headers, named)
		}
		made = append(made, next)
	}
	return made
}

// sendSarama sends the messages and waits; results are in the order of the messages.
func sendSarama(producer sarama.AsyncProducer, messages []*sarama.ProducerMessage) []error {
	go func() {
		for _, each := range messages {
			producer.Input() <- each
		}
	}()
	errs := make([]error, len(messages))
	for range messages {
		select {
		case <-producer.Successes():
		case failed := <-producer.Errors():
			errs[failed.Msg.Metadata.(int)] = failed.Err
		}
	}
	return errs
}

func (s *saramas) produce(asked *request) (answer, error) {
	config, err := s.producerConfig()
	if err != nil {
		return nil, err
	}
	config.Producer.Compression = saramaCodecs[asked.Codec]
	config.Producer.RequiredAcks = saramaAcks[asked.Acks]
	config.Producer.MaxMessageBytes = asked.MaxRequestBytes
	if asked.Idempotent {
		idempotent(config)
	}
	producer, err := sarama.NewAsyncProducer([]string{asked.Bootstrap}, config)
	if err != nil {
		return nil, err
	}
	defer func() { _ = producer.Close() }()
	messages := saramaMessages(asked)
	placed := func(index int) []any { return place(messages[index].Partition, messages[index].Offset) }
	return outcomes(sendSarama(producer, messages), saramaCode, placed), nil
}

func (s *saramas) consume(asked *request) (answer, error) {
	config, err := s.config()
	if err != nil {
		return nil, err
	}
	config.Consumer.Return.Errors = true
	if asked.readCommitted() {
		config.Consumer.IsolationLevel = sarama.ReadCommitted
	}
	consumer, err := sarama.NewConsumer([]string{asked.Bootstrap}, config)
	if err != nil {
		return nil, err
	}
	defer func() { _ = consumer.Close() }()
	messages := make(chan *sarama.ConsumerMessage)
	failures := make(chan error)
	done := make(chan struct{})
	defer close(done)
	for _, number := range asked.Partitions.numbers {
		part, err := consumePartition(consumer, asked, number)
		if err != nil {
			return nil, err
		}
		defer part.AsyncClose()
		go forward(part, messages, failures, done)
	}
	found := []any{}
	deadline := time.After(asked.timeout())
	for len(found) < asked.Count {
		select {
		case one := <-messages:
			found = append(found, saramaShown(one))
		case err := <-failures:
			return nil, err
		case <-deadline:
			return answer{"records": found}, nil
		}
	}
	return answer{"records": found}, nil
}

// consumePartition starts at the requested position. Sarama does not reset offsets that are out of range, so
// this function does.
func consumePartition(
	consumer sarama.Consumer, asked *request, number int32,
) (sarama.PartitionConsumer, error) {
	named := map[string]int64{"earliest": sarama.OffsetOldest, "latest": sarama.OffsetNewest}
	start, given := named[asked.Start.named]
	if !given {
		start = asked.Start.number
	}
	part, err := consumer.ConsumePartition(asked.Topic, number, start)
	if again, wanted := named[asked.Reset]; wanted && errors.Is(err, sarama.ErrOffsetOutOfRange) {
		return consumer.ConsumePartition(asked.Topic, number, again)
	}
	return part, err
}

// forward passes on messages and errors of a partition until done is closed.
func forward(
	part sarama.PartitionConsumer,
	messages chan<- *sarama.ConsumerMessage,
	failures chan<- error,
	done <-chan struct{},
) {
	for {
		select {
		case one, open := <-part.Messages():
			if !open {
				return
			}
			select {
			case messages <- one:
			case <-done:
				return
			}
		case failed, open := <-part.Errors():
			if !open {
				return
			}
			select {
			case failures <- failed:
			case <-done:
				return
			}
		case <-done:
			return
		}
	}
}

// saramaShown omits timestamp_type, which sarama does not report.
func saramaShown(one *sarama.ConsumerMessage) answer {
	headers := []any{}
	for _, each := range one.Headers {
		headers = append(headers, []any{string(each.Key), toText(each.Value)})
	}
	return answer{
		"partition": one.Partition,
		"offset":    one.Offset,
		"key":       toText(one.Key),
		"value":     toText(one.Value),
		"timestamp": one.Timestamp.UnixMilli(),
		"headers":   headers,
	}
}
