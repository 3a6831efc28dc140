package main

import (
	"context"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func (f *franz) admin(asked *request) (*kadm.Client, error) {
	if known, found := f.admins[asked.Bootstrap]; found {
		return known, nil
	}
	client, err := f.open(asked.Bootstrap)
	if err != nil {
		return nil, err
	}
	f.admins[asked.Bootstrap] = kadm.NewClient(client)
	return f.admins[asked.Bootstrap], nil
}

func (f *franz) createTopic(asked *request) (answer, error) {
	admin, err := f.admin(asked)
	if err != nil {
		return nil, err
	}
	count := asked.Partitions.count
	_, err = admin.CreateTopic(context.Background(), count, asked.Replication, asked.Configs, asked.Topic)
	return answer{}, err
}

func (f *franz) deleteTopic(asked *request) (answer, error) {
	admin, err := f.admin(asked)
	if err != nil {
		return nil, err
	}
	_, err = admin.DeleteTopic(context.Background(), asked.Topic)
	return answer{}, err
}

func (f *franz) listTopics(asked *request) (answer, error) {
	admin, err := f.admin(asked)
	if err != nil {
		return nil, err
	}
	found, err := admin.ListTopicsWithInternal(context.Background())
	if err != nil {
		return nil, err
	}
	return answer{"topics": found.Names()}, nil
}

func (f *franz) describeTopic(asked *request) (answer, error) {
	admin, err := f.admin(asked)
	if err != nil {
		return nil, err
	}
	found, err := admin.Metadata(context.Background(), asked.Topic)
	if err != nil {
		return nil, err
	}
	described := found.Topics[asked.Topic]
	if described.Err != nil {
		return nil, described.Err
	}
	shown := []any{}
	for _, part := range described.Partitions.Sorted() {
		shown = append(shown, []any{part.Partition, len(part.Replicas), len(part.ISR)})
	}
	return answer{"partitions": shown}, nil
}

func (f *franz) topicConfig(asked *request) (answer, error) {
	admin, err := f.admin(asked)
	if err != nil {
		return nil, err
	}
	all, err := admin.DescribeTopicConfigs(context.Background(), asked.Topic)
	if err != nil {
		return nil, err
	}
	found, err := all.On(asked.Topic, nil)
	if err == nil {
		err = found.Err
	}
	if err != nil {
		return nil, err
	}
	shown := answer{}
	for _, entry := range found.Configs {
		shown[entry.Key] = []any{entry.Value, entry.Source == kmsg.ConfigSourceDefaultConfig}
	}
	return answer{"configs": shown}, nil
}

func (f *franz) setTopicConfig(asked *request) (answer, error) {
	admin, err := f.admin(asked)
	if err != nil {
		return nil, err
	}
	changes := []kadm.AlterConfig{}
	for name, value := range asked.Configs {
		changes = append(changes, kadm.AlterConfig{Op: kadm.SetConfig, Name: name, Value: value})
	}
	all, err := admin.AlterTopicConfigs(context.Background(), changes, asked.Topic)
	if err != nil {
		return nil, err
	}
	changed, err := all.On(asked.Topic, nil)
	if err == nil {
		err = changed.Err
	}
	return answer{}, err
}

func (f *franz) addPartitions(asked *request) (answer, error) {
	admin, err := f.admin(asked)
	if err != nil {
		return nil, err
	}
	all, err := admin.UpdatePartitions(context.Background(), asked.Total, asked.Topic)
	if err != nil {
		return nil, err
	}
	return answer{}, all.Error()
}

func (f *franz) deleteRecords(asked *request) (answer, error) {
	admin, err := f.admin(asked)
	if err != nil {
		return nil, err
	}
	before := kadm.Offsets{}
	for number, offset := range asked.Before {
		before.AddOffset(asked.Topic, number, offset, -1)
	}
	all, err := admin.DeleteRecords(context.Background(), before)
	if err == nil {
		err = all.Error()
	}
	if err != nil {
		return nil, err
	}
	low := map[int32]int64{}
	for _, one := range all.Sorted() {
		low[one.Partition] = one.LowWatermark
	}
	return answer{"low": low}, nil
}

func (f *franz) listGroups(asked *request) (answer, error) {
	admin, err := f.admin(asked)
	if err != nil {
		return nil, err
	}
	found, err := admin.ListGroups(context.Background())
	if err != nil {
		return nil, err
	}
	return answer{"groups": found.Groups()}, nil
}

func (f *franz) describeGroup(asked *request) (answer, error) {
	admin, err := f.admin(asked)
	if err != nil {
		return nil, err
	}
	all, err := admin.DescribeGroups(context.Background(), asked.Group)
	if err != nil {
		return nil, err
	}
	found, err := all.On(asked.Group, nil)
	if err == nil {
		err = found.Err
	}
	if err != nil {
		return nil, err
	}
	held := []int{}
	for _, member := range found.Members {
		count := 0
		if assigned, known := member.Assigned.AsConsumer(); known {
			for _, topic := range assigned.Topics {
				count += len(topic.Partitions)
			}
		}
		held = append(held, count)
	}
	slices.Sort(held)
	return answer{"state": strings.ToLower(found.State), "members": held, "hosts": len(held)}, nil
}

func (f *franz) deleteGroup(asked *request) (answer, error) {
	admin, err := f.admin(asked)
	if err != nil {
		return nil, err
	}
	_, err = admin.DeleteGroup(context.Background(), asked.Group)
	return answer{}, err
}

func (f *franz) describeCluster(asked *request) (answer, error) {
	admin, err := f.admin(asked)
	if err != nil {
		return nil, err
	}
	found, err := admin.BrokerMetadata(context.Background())
	if err != nil {
		return nil, err
	}
	return answer{"nodes": len(found.Brokers), "has_cluster_id": found.Cluster != ""}, nil
}
