package main

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// franzMember is a group member that polls in its own goroutine.
type franzMember struct {
	client *kgo.Client
	log    *memberLog
	stop   context.CancelFunc
	ended  chan struct{}
}

func franzBalancer(strategy string) kgo.GroupBalancer {
	switch strategy {
	case "roundrobin":
		return kgo.RoundRobinBalancer()
	case "cooperative-sticky":
		return kgo.CooperativeStickyBalancer()
	}
	return kgo.RangeBalancer()
}

func (f *franz) memberStart(asked *request) (answer, error) {
	log := newMemberLog()
	assigned := func(_ context.Context, _ *kgo.Client, parts map[string][]int32) {
		for topic, numbers := range parts {
			log.assign(topic, numbers...)
		}
	}
	revoked := func(_ context.Context, _ *kgo.Client, parts map[string][]int32) {
		for topic, numbers := range parts {
			log.revoke(topic, numbers...)
		}
	}
	options := []kgo.Opt{
		kgo.ConsumerGroup(asked.Group),
		kgo.ConsumeTopics(asked.Topics...),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.Balancers(franzBalancer(asked.Strategy)),
		kgo.SessionTimeout(asked.sessionTimeout()),
		kgo.HeartbeatInterval(300 * time.Millisecond),
		kgo.MetadataMaxAge(time.Second),
		kgo.MetadataMinAge(500 * time.Millisecond),
		kgo.DisableAutoCommit(),
		kgo.OnPartitionsAssigned(assigned),
		kgo.OnPartitionsRevoked(revoked),
		kgo.OnPartitionsLost(revoked),
	}
	if asked.Instance != "" {
		options = append(options, kgo.InstanceID(asked.Instance))
	}
	client, err := f.open(asked.Bootstrap, options...)
	if err != nil {
		return nil, err
	}
	running, stop := context.WithCancel(context.Background())
	member := &franzMember{client, log, stop, make(chan struct{})}
	go member.run(running)
	f.members[asked.Member] = member
	return answer{}, nil
}

func (m *franzMember) run(running context.Context) {
	defer close(m.ended)
	for running.Err() == nil {
		fetches := m.client.PollFetches(running)
		for _, failed := range fetches.Errors() {
			if running.Err() == nil {
				m.log.fail(failed.Err)
			}
		}
		fetches.EachRecord(func(one *kgo.Record) { m.log.receive(one.Topic, one.Partition, one.Offset) })
	}
}

func (f *franz) memberState(asked *request) (answer, error) {
	return f.members[asked.Member].log.state(), nil
}

func (f *franz) memberCommit(asked *request) (answer, error) {
	limit, cancel := within(30 * time.Second)
	defer cancel()
	return answer{}, f.members[asked.Member].client.CommitUncommittedOffsets(limit)
}

func (f *franz) memberStop(asked *request) (answer, error) {
	member := f.members[asked.Member]
	delete(f.members, asked.Member)
	member.stop()
	<-member.ended
	member.client.Close()
	return answer{}, nil
}
