package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/kerberos"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// franz is franz-go behind the verbs of the line protocol.
type franz struct {
	admins    map[string]*kadm.Client
	members   map[string]*franzMember
	producers map[string]*kgo.Client
}

func newFranz() *franz {
	return &franz{map[string]*kadm.Client{}, map[string]*franzMember{}, map[string]*kgo.Client{}}
}

func (f *franz) verbs() map[string]verb {
	fenced := fences{}
	return map[string]verb{
		"produce":          f.produce,
		"consume":          f.consume,
		"offsets":          f.offsets,
		"latest_by_admin":  f.latestByAdmin,
		"commit":           f.commit,
		"committed":        f.committed,
		"member_start":     f.memberStart,
		"member_state":     f.memberState,
		"member_commit":    f.memberCommit,
		"member_stop":      f.memberStop,
		"transaction":      fenced.kept(f.transaction, franzCode),
		"transaction_open": fenced.kept(f.transactionOpen, franzCode),
		"transaction_end":  fenced.kept(f.transactionEnd, franzCode),
		"create_topic":     f.createTopic,
		"delete_topic":     f.deleteTopic,
		"list_topics":      f.listTopics,
		"describe_topic":   f.describeTopic,
		"topic_config":     f.topicConfig,
		"set_topic_config": f.setTopicConfig,
		"add_partitions":   f.addPartitions,
		"delete_records":   f.deleteRecords,
		"list_groups":      f.listGroups,
		"describe_group":   f.describeGroup,
		"delete_group":     f.deleteGroup,
		"group_offsets":    f.groupOffsets,
		"describe_cluster": f.describeCluster,
	}
}

func franzCode(err error) int {
	var known *kerr.Error
	if errors.As(err, &known) {
		return int(known.Code)
	}
	return localFailure
}

// open creates a client for a broker, and fails at once if the broker is unreachable: a client would retry forever.
func (f *franz) open(bootstrap string, options ...kgo.Opt) (*kgo.Client, error) {
	options = append(
		options,
		kgo.SeedBrokers(bootstrap),
		kgo.WithLogger(kgo.BasicLogger(os.Stderr, kgo.LogLevelWarn, nil)),
	)
	given, err := givenSecurity()
	if err != nil {
		return nil, err
	}
	config, err := given.tls()
	if err != nil {
		return nil, err
	}
	if config != nil {
		options = append(options, kgo.DialTLSConfig(config))
	}
	if given.Mechanism != "" {
		mechanism, err := given.forFranz()
		if err != nil {
			return nil, err
		}
		options = append(options, kgo.SASL(mechanism))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return nil, err
	}
	limit, cancel := within(30 * time.Second)
	defer cancel()
	if err := client.Ping(limit); err != nil {
		client.Close()
		return nil, err
	}
	return client, nil
}

func (given *security) forFranz() (sasl.Mechanism, error) {
	switch given.Mechanism {
	case "PLAIN":
		return plain.Auth{User: given.User, Pass: given.Password}.AsMechanism(), nil
	case "SCRAM-SHA-256":
		return scram.Auth{User: given.User, Pass: given.Password}.AsSha256Mechanism(), nil
	case "SCRAM-SHA-512":
		return scram.Auth{User: given.User, Pass: given.Password}.AsSha512Mechanism(), nil
	case "OAUTHBEARER":
		kept := &tokens{url: given.TokenURL}
		return oauth.Oauth(func(context.Context) (oauth.Auth, error) {
			token, err := kept.current()
			return oauth.Auth{Token: token}, err
		}), nil
	case "GSSAPI":
		client, err := given.kerberosClient()
		if err != nil {
			return nil, err
		}
		return kerberos.Auth{Client: client, Service: given.Service}.AsMechanismWithClose(), nil
	}
	return nil, given.unknownMechanism()
}

// within returns a context with this timeout.
func within(limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), limit)
}
