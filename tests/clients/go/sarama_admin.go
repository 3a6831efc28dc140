package main

import (
	"errors"
	"slices"
	"strings"

	"github.com/IBM/sarama"
)

// saramaAdmin is an admin client and its underlying client.
type saramaAdmin struct {
	sarama.ClusterAdmin
	client sarama.Client
}

func (s *saramas) admin(asked *request) (*saramaAdmin, error) {
	if known, found := s.admins[asked.Bootstrap]; found {
		return known, nil
	}
	config, err := s.config()
	if err != nil {
		return nil, err
	}
	client, err := sarama.NewClient([]string{asked.Bootstrap}, config)
	if err != nil {
		return nil, err
	}
	admin, err := sarama.NewClusterAdminFromClient(client)
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	s.admins[asked.Bootstrap] = &saramaAdmin{admin, client}
	return s.admins[asked.Bootstrap], nil
}

func (s *saramas) createTopic(asked *request) (answer, error) {
	admin, err := s.admin(asked)
	if err != nil {
		return nil, err
	}
	wanted := &sarama.TopicDetail{
		NumPartitions:     asked.Partitions.count,
		ReplicationFactor: asked.Replication,
		ConfigEntries:     asked.Configs,
	}
	return answer{}, admin.CreateTopic(asked.Topic, wanted, false)
}

func (s *saramas) deleteTopic(asked *request) (answer, error) {
	admin, err := s.admin(asked)
	if err != nil {
		return nil, err
	}
	return answer{}, admin.DeleteTopic(asked.Topic)
}

func (s *saramas) listTopics(asked *request) (answer, error) {
	admin, err := s.admin(asked)
	if err != nil {
		return nil, err
	}
	found, err := admin.ListTopics()
	if err != nil {
		return nil, err
	}
	return answer{"topics": sortedNames(found)}, nil
}

func (s *saramas) describeTopic(asked *request) (answer, error) {
	admin, err := s.admin(asked)
	if err != nil {
		return nil, err
	}
	found, err := admin.DescribeTopics([]string{asked.Topic})
	if err != nil {
		return nil, err
	}
	described := found[0]
	if described.Err != sarama.ErrNoError {
		return nil, described.Err
	}
	slices.SortFunc(described.Partitions, func(one, other *sarama.PartitionMetadata) int {
		return int(one.ID - other.ID)
	})
	shown := []any{}
	for _, part := range described.Partitions {
		shown = append(shown, []any{part.ID, len(part.Replicas), len(part.Isr)})
	}
	return answer{"partitions": shown}, nil
}

func (s *saramas) topicConfig(asked *request) (answer, error) {
	admin, err := s.admin(asked)
	if err != nil {
		return nil, err
	}
	wanted := []*sarama.ConfigResource{{Type: sarama.TopicResource, Name: asked.Topic}}
	found, err := admin.DescribeConfigs(wanted, sarama.DescribeConfigsOptions{})
	if err != nil {
		return nil, err
	}
	if found[0].ErrorCode != sarama.ErrNoError {
		return nil, found[0].ErrorCode
	}
	shown := answer{}
	for _, entry := range found[0].Configs {
		shown[entry.Name] = []any{entry.Value, entry.Default}
	}
	return answer{"configs": shown}, nil
}

func (s *saramas) setTopicConfig(asked *request) (answer, error) {
	admin, err := s.admin(asked)
	if err != nil {
		return nil, err
	}
	changes := map[string]sarama.IncrementalAlterConfigsEntry{}
	for name, value := range asked.Configs {
		set := sarama.IncrementalAlterConfigsOperationSet
		changes[name] = sarama.IncrementalAlterConfigsEntry{Operation: set, Value: value}
	}
	return answer{}, admin.IncrementalAlterConfig(sarama.TopicResource, asked.Topic, changes, false)
}

func (s *saramas) addPartitions(asked *request) (answer, error) {
	admin, err := s.admin(asked)
	if err != nil {
		return nil, err
	}
	return answer{}, admin.CreatePartitions(asked.Topic, int32(asked.Total), nil, false)
}

// deleteRecords requests the first offsets afterwards, because sarama does not return the low watermarks.
func (s *saramas) deleteRecords(asked *request) (answer, error) {
	admin, err := s.admin(asked)
	if err != nil {
		return nil, err
	}
	if err := admin.DeleteRecords(asked.Topic, asked.Before); err != nil {
		return nil, err
	}
	low := map[int32]int64{}
	for number := range asked.Before {
		low[number], err = admin.client.GetOffset(asked.Topic, number, sarama.OffsetOldest)
		if err != nil {
			return nil, err
		}
	}
	return answer{"low": low}, nil
}

func (s *saramas) listGroups(asked *request) (answer, error) {
	admin, err := s.admin(asked)
	if err != nil {
		return nil, err
	}
	found, err := admin.ListConsumerGroups()
	if err != nil {
		return nil, err
	}
	return answer{"groups": sortedNames(found)}, nil
}

func (s *saramas) describeGroup(asked *request) (answer, error) {
	admin, err := s.admin(asked)
	if err != nil {
		return nil, err
	}
	found, err := admin.DescribeConsumerGroups([]string{asked.Group})
	if err != nil {
		return nil, err
	}
	if found[0].Err != sarama.ErrNoError {
		return nil, found[0].Err
	}
	held := []int{}
	for _, member := range found[0].Members {
		assigned, err := member.GetMemberAssignment()
		if err != nil {
			return nil, err
		}
		count := 0
		if assigned != nil {
			for _, numbers := range assigned.Topics {
				count += len(numbers)
			}
		}
		held = append(held, count)
	}
	slices.Sort(held)
	return answer{"state": strings.ToLower(found[0].State), "members": held, "hosts": len(held)}, nil
}

func (s *saramas) deleteGroup(asked *request) (answer, error) {
	admin, err := s.admin(asked)
	if err != nil {
		return nil, err
	}
	return answer{}, admin.DeleteConsumerGroup(asked.Group)
}

// describeCluster cannot return the cluster id, which sarama does not expose.
func (s *saramas) describeCluster(asked *request) (answer, error) {
	admin, err := s.admin(asked)
	if err != nil {
		return nil, err
	}
	brokers, controller, err := admin.DescribeCluster()
	if err != nil {
		return nil, err
	}
	return answer{"nodes": len(brokers), "has_controller": controller >= 0}, nil
}
