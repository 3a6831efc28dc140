package main

import (
	"errors"
	"log"
	"os"
	"strings"

	"github.com/IBM/sarama"
	"github.com/xdg-go/scram"
)

// saramas is sarama behind the verbs of the line protocol.
type saramas struct {
	admins    map[string]*saramaAdmin
	members   map[string]*saramaMember
	producers map[string]sarama.AsyncProducer
}

// kafkaCodes is greater than the largest of Kafka's error codes.
const kafkaCodes = 200

func newSarama() *saramas {
	sarama.Logger = log.New(os.Stderr, "", log.LstdFlags)
	return &saramas{
		map[string]*saramaAdmin{}, map[string]*saramaMember{}, map[string]sarama.AsyncProducer{},
	}
}

func (s *saramas) verbs() map[string]verb {
	fenced := fences{}
	return map[string]verb{
		"produce":          s.produce,
		"consume":          s.consume,
		"offsets":          s.offsets,
		"commit":           s.commit,
		"committed":        s.committed,
		"member_start":     s.memberStart,
		"member_state":     s.memberState,
		"member_commit":    s.memberCommit,
		"member_stop":      s.memberStop,
		"transaction":      fenced.kept(s.transaction, saramaCode),
		"transaction_open": fenced.kept(s.transactionOpen, saramaCode),
		"transaction_end":  fenced.kept(s.transactionEnd, saramaCode),
		"create_topic":     s.createTopic,
		"delete_topic":     s.deleteTopic,
		"list_topics":      s.listTopics,
		"describe_topic":   s.describeTopic,
		"topic_config":     s.topicConfig,
		"set_topic_config": s.setTopicConfig,
		"add_partitions":   s.addPartitions,
		"delete_records":   s.deleteRecords,
		"list_groups":      s.listGroups,
		"describe_group":   s.describeGroup,
		"delete_group":     s.deleteGroup,
		"group_offsets":    s.groupOffsets,
		"describe_cluster": s.describeCluster,
	}
}

func saramaCode(err error) int {
	// errors.Is finds some wrapped errors that errors.As does not find.
	for code := range kafkaCodes {
		if code > 0 && errors.Is(err, sarama.KError(code)) {
			return code
		}
	}
	var refused sarama.ConfigurationError
	if errors.As(err, &refused) && strings.Contains(string(refused), "message larger than") {
		return messageTooLarge // rejected by the client
	}
	return localFailure
}

// config returns the configuration shared by all clients.
func (s *saramas) config() (*sarama.Config, error) {
	config := sarama.NewConfig()
	config.Version = sarama.V3_9_1_0
	given, err := givenSecurity()
	if err != nil {
		return nil, err
	}
	config.Net.TLS.Config, err = given.tls()
	if err != nil {
		return nil, err
	}
	config.Net.TLS.Enable = config.Net.TLS.Config != nil
	if given.Mechanism != "" {
		err = given.forSarama(config)
	}
	return config, err
}

func (given *security) forSarama(config *sarama.Config) error {
	sasl := &config.Net.SASL
	sasl.Enable = true
	sasl.Version = sarama.SASLHandshakeV1
	sasl.Mechanism = sarama.SASLMechanism(given.Mechanism)
	sasl.User, sasl.Password = given.User, given.Password
	switch given.Mechanism {
	case sarama.SASLTypePlaintext:
	case sarama.SASLTypeSCRAMSHA256:
		sasl.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient { return &scramClient{hash: scram.SHA256} }
	case sarama.SASLTypeSCRAMSHA512:
		sasl.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient { return &scramClient{hash: scram.SHA512} }
	case sarama.SASLTypeOAuth:
		sasl.TokenProvider = &tokenProvider{&tokens{url: given.TokenURL}}
	case sarama.SASLTypeGSSAPI:
		name, realm, err := given.kerberosName()
		if err != nil {
			return err
		}
		sasl.GSSAPI = sarama.GSSAPIConfig{
			AuthType:           sarama.KRB5_KEYTAB_AUTH,
			KeyTabPath:         given.Keytab,
			KerberosConfigPath: kerberosConfig(),
			ServiceName:        given.Service,
			Username:           name,
			Realm:              realm,
			DisablePAFXFAST:    true,
		}
	default:
		return given.unknownMechanism()
	}
	return nil
}

// scramClient implements the SCRAM exchange, which sarama does not include.
type scramClient struct {
	hash         scram.HashGeneratorFcn
	conversation *scram.ClientConversation
}

func (c *scramClient) Begin(user, password, authorization string) error {
	client, err := c.hash.NewClient(user, password, authorization)
	if err == nil {
		c.conversation = client.NewConversation()
	}
	return err
}

func (c *scramClient) Step(challenge string) (string, error) {
	return c.conversation.Step(challenge)
}

func (c *scramClient) Done() bool {
	return c.conversation.Done()
}

type tokenProvider struct{ kept *tokens }

func (p *tokenProvider) Token() (*sarama.AccessToken, error) {
	token, err := p.kept.current()
	return &sarama.AccessToken{Token: token}, err
}
