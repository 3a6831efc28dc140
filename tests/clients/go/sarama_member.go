package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

// saramaMember is a group member whose claims are read by the library's goroutines.
type saramaMember struct {
	group   sarama.ConsumerGroup
	log     *memberLog
	stop    context.CancelFunc
	running sync.WaitGroup

	mutex   sync.Mutex
	session sarama.ConsumerGroupSession
}

func saramaStrategy(name string) sarama.BalanceStrategy {
	switch name {
	case "roundrobin":
		return sarama.NewBalanceStrategyRoundRobin()
	case "cooperative-sticky":
		return sarama.NewBalanceStrategyCooperativeSticky()
	}
	return sarama.NewBalanceStrategyRange()
}

func (s *saramas) memberStart(asked *request) (answer, error) {
	config, err := s.config()
	if err != nil {
		return nil, err
	}
	config.Metadata.RefreshFrequency = time.Second
	config.Consumer.Return.Errors = true
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = false
	config.Consumer.Group.InstanceId = asked.Instance
	config.Consumer.Group.Session.Timeout = asked.sessionTimeout()
	config.Consumer.Group.Heartbeat.Interval = 300 * time.Millisecond
	config.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{saramaStrategy(asked.Strategy)}
	group, err := sarama.NewConsumerGroup([]string{asked.Bootstrap}, asked.Group, config)
	if err != nil {
		return nil, err
	}
	running, stop := context.WithCancel(context.Background())
	member := &saramaMember{group: group, log: newMemberLog(), stop: stop}
	member.running.Go(func() {
		// With an eager strategy, each rebalance ends a session, and the next call joins again.
		for running.Err() == nil {
			if err := group.Consume(running, asked.Topics, member); err != nil {
				member.log.fail(err)
			}
		}
	})
	member.running.Go(func() {
		for failed := range group.Errors() {
			if !errors.Is(failed, context.Canceled) {
				member.log.fail(failed)
			}
		}
	})
	s.members[asked.Member] = member
	return answer{}, nil
}

// Setup is called at the start of a session.
func (m *saramaMember) Setup(session sarama.ConsumerGroupSession) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.session = session
	return nil
}

// Cleanup is called at the end of a session.
func (m *saramaMember) Cleanup(sarama.ConsumerGroupSession) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.session = nil
	return nil
}

// ConsumeClaim reads one partition while it is assigned to the member.
func (m *saramaMember) ConsumeClaim(
	session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim,
) error {
	m.log.assign(claim.Topic(), claim.Partition())
	defer m.log.revoke(claim.Topic(), claim.Partition())
	for {
		select {
		case one, open := <-claim.Messages():
			if !open {
				return nil
			}
			session.MarkMessage(one, "")
			m.log.receive(one.Topic, one.Partition, one.Offset)
		case <-session.Context().Done():
			return nil
		}
	}
}

func (s *saramas) memberState(asked *request) (answer, error) {
	return s.members[asked.Member].log.state(), nil
}

// memberCommit always succeeds, because sarama reports failed commits only in the errors of the group.
func (s *saramas) memberCommit(asked *request) (answer, error) {
	member := s.members[asked.Member]
	member.mutex.Lock()
	session := member.session
	member.mutex.Unlock()
	if session != nil {
		session.Commit()
	}
	return answer{}, nil
}

func (s *saramas) memberStop(asked *request) (answer, error) {
	member := s.members[asked.Member]
	delete(s.members, asked.Member)
	member.stop()
	err := member.group.Close()
	member.running.Wait()
	return answer{}, err
}
