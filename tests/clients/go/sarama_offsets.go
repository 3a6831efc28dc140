package main

import (
	"cmp"
	"slices"

	"github.com/IBM/sarama"
)

func (s *saramas) offsets(asked *request) (answer, error) {
	admin, err := s.admin(asked)
	if err != nil {
		return nil, err
	}
	named := map[string]int64{"earliest": sarama.OffsetOldest, "latest": sarama.OffsetNewest}
	at, given := named[asked.At.named]
	if !given {
		at = asked.At.number
	}
	found := map[int32]any{}
	for _, number := range asked.Partitions.numbers {
		hit, err := admin.client.GetOffset(asked.Topic, number, at)
		if err != nil {
			return nil, err
		}
		found[number] = hit
		if hit < 0 {
			found[number] = nil
		}
	}
	return answer{"offsets": found}, nil
}

func (s *saramas) commit(asked *request) (answer, error) {
	manager, err := s.offsetManager(asked)
	if err != nil {
		return nil, err
	}
	defer manager.close()
	for number, wanted := range asked.Offsets {
		part, err := manager.manage(asked.Topic, number)
		if err != nil {
			return nil, err
		}
		part.MarkOffset(wanted.offset, wanted.metadata)
	}
	manager.Commit()
	return answer{}, manager.failure()
}

func (s *saramas) committed(asked *request) (answer, error) {
	manager, err := s.offsetManager(asked)
	if err != nil {
		return nil, err
	}
	defer manager.close()
	found := map[int32]any{}
	for _, number := range asked.Partitions.numbers {
		part, err := manager.manage(asked.Topic, number)
		if err != nil {
			return nil, err
		}
		found[number] = nil
		if offset, metadata := part.NextOffset(); offset >= 0 {
			found[number] = []any{offset, metadata}
		}
	}
	return answer{"committed": found}, nil
}

// managed is an offset manager with its partitions and its own client.
type managed struct {
	sarama.OffsetManager
	client sarama.Client
	parts  []sarama.PartitionOffsetManager
}

func (s *saramas) offsetManager(asked *request) (*managed, error) {
	config, err := s.config()
	if err != nil {
		return nil, err
	}
	config.Consumer.Return.Errors = true
	config.Consumer.Offsets.AutoCommit.Enable = false
	client, err := sarama.NewClient([]string{asked.Bootstrap}, config)
	if err != nil {
		return nil, err
	}
	made, err := sarama.NewOffsetManagerFromClient(asked.Group, client)
	if err != nil {
		_ = client.Close()
		return nil, err
	}
	return &managed{OffsetManager: made, client: client}, nil
}

func (m *managed) manage(topic string, number int32) (sarama.PartitionOffsetManager, error) {
	part, err := m.ManagePartition(topic, number)
	if err == nil {
		m.parts = append(m.parts, part)
	}
	return part, err
}

// failure returns the first error of a commit.
func (m *managed) failure() error {
	for _, part := range m.parts {
		select {
		case failed := <-part.Errors():
			return failed
		default:
		}
	}
	return nil
}

func (m *managed) close() {
	for _, part := range m.parts {
		part.AsyncClose()
	}
	_ = m.Close()
	_ = m.client.Close()
}

func (s *saramas) groupOffsets(asked *request) (answer, error) {
	admin, err := s.admin(asked)
	if err != nil {
		return nil, err
	}
	all, err := admin.ListConsumerGroupOffsets(asked.Group, nil)
	if err != nil {
		return nil, err
	}
	if all.Err != sarama.ErrNoError {
		return nil, all.Err
	}
	type hit struct {
		topic     string
		partition int32
		offset    int64
	}
	hits := []hit{}
	for topic, parts := range all.Blocks {
		for number, block := range parts {
			hits = append(hits, hit{topic, number, block.Offset})
		}
	}
	slices.SortFunc(hits, func(one, other hit) int {
		return cmp.Or(cmp.Compare(one.topic, other.topic), cmp.Compare(one.partition, other.partition))
	})
	found := []any{}
	for _, each := range hits {
		found = append(found, []any{each.topic, each.partition, each.offset})
	}
	return answer{"offsets": found}, nil
}
