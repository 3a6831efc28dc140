'use strict'
// Administration of topics, configs, offsets and groups.

const { AssignerProtocol, ConfigResourceTypes } = require('kafkajs')

const { connection } = require('./connection')
const { TOPIC_ALREADY_EXISTS } = require('./errors')

/** Wraps a verb so that it gets a new admin client. */
function asAdmin(work) {
  return async ({ bootstrap, ...request }) => {
    const admin = connection(bootstrap).admin()
    await admin.connect()
    try {
      return await work(admin, request)
    } finally {
      await admin.disconnect()
    }
  }
}

const nameAndValue = configs => Object.entries(configs).map(([name, value]) => ({ name, value }))

async function create_topic(admin, { topic, partitions, replication = 1, configs = {} }) {
  const made = await admin.createTopics({
    topics: [
      {
        topic,
        numPartitions: partitions,
        replicationFactor: replication,
        configEntries: nameAndValue(configs),
      },
    ],
  })
  if (!made) throw Object.assign(new Error(`${topic} is there`), { code: TOPIC_ALREADY_EXISTS })
  return {}
}

async function delete_topic(admin, { topic }) {
  await admin.deleteTopics({ topics: [topic] })
  return {}
}

async function list_topics(admin) {
  return { topics: (await admin.listTopics()).sort() }
}

async function describe_topic(admin, { topic }) {
  const { topics } = await admin.fetchTopicMetadata({ topics: [topic] })
  const parts = topics[0].partitions.map(part => [part.partitionId, part.replicas.length, part.isr.length])
  return { partitions: parts.sort((one, other) => one[0] - other[0]) }
}

async function topic_config(admin, { topic }) {
  const { resources } = await admin.describeConfigs({
    resources: [{ type: ConfigResourceTypes.TOPIC, name: topic }],
  })
  const pairs = resources[0].configEntries.map(one => [one.configName, [one.configValue, one.isDefault]])
  return { configs: Object.fromEntries(pairs) }
}

async function set_topic_config(admin, { topic, configs }) {
  const resource = { type: ConfigResourceTypes.TOPIC, name: topic, configEntries: nameAndValue(configs) }
  await admin.alterConfigs({ resources: [resource] })
  return {}
}

async function add_partitions(admin, { topic, total }) {
  await admin.createPartitions({ topicPartitions: [{ topic, count: total }] })
  return {}
}

/** kafkajs does not return the low watermarks in the response, so they are requested separately. */
async function delete_records(admin, { topic, before }) {
  const partitions = Object.entries(before).map(([number, offset]) => ({
    partition: Number(number),
    offset: String(offset),
  }))
  await admin.fetchTopicOffsets(topic) // otherwise, kafkajs does not know the leaders
  await admin.deleteTopicRecords({ topic, partitions })
  const after = (await admin.fetchTopicOffsets(topic)).filter(({ partition }) => String(partition) in before)
  return { low: Object.fromEntries(after.map(({ partition, low }) => [partition, Number(low)])) }
}

async function offsets(admin, { topic, partitions, at }) {
  const edges = await admin.fetchTopicOffsets(topic)
  const found = {}
  if (!Number.isInteger(at)) {
    for (const { partition, low, high } of edges) found[partition] = Number(at === 'earliest' ? low : high)
  } else {
    for (const { partition, offset } of await admin.fetchTopicOffsetsByTimestamp(topic, at)) {
      // If no record is at or after the time, kafkajs returns the end offset.
      const { high } = edges.find(edge => edge.partition === partition)
      found[partition] = offset === high ? null : Number(offset)
    }
  }
  return { offsets: Object.fromEntries(partitions.map(partition => [partition, found[partition]])) }
}

async function committed(admin, { group, topic, partitions }) {
  const [{ partitions: known }] = await admin.fetchOffsets({ groupId: group, topics: [topic] })
  const found = Object.fromEntries(known.map(one => [one.partition, one]))
  const shown = ({ offset, metadata }) => (Number(offset) < 0 ? null : [Number(offset), metadata || ''])
  return { committed: Object.fromEntries(partitions.map(number => [number, shown(found[number])])) }
}

async function list_groups(admin) {
  return { groups: (await admin.listGroups()).groups.map(({ groupId }) => groupId).sort() }
}

async function describe_group(admin, { group }) {
  const [{ state, members }] = (await admin.describeGroups([group])).groups
  const held = members.map(({ memberAssignment }) => {
    const decoded = AssignerProtocol.MemberAssignment.decode(memberAssignment)
    return decoded === null ? 0 : Object.values(decoded.assignment).flat().length
  })
  return { state: state.toLowerCase(), members: held.sort(), hosts: members.length }
}

async function delete_group(admin, { group }) {
  await admin.deleteGroups([group])
  return {}
}

async function group_offsets(admin, { group }) {
  const found = await admin.fetchOffsets({ groupId: group })
  const places = found.flatMap(({ topic, partitions }) =>
    partitions.map(({ partition, offset }) => [topic, partition, Number(offset)])
  )
  return { offsets: places.sort() }
}

async function describe_cluster(admin) {
  const { brokers, clusterId } = await admin.describeCluster()
  return { nodes: brokers.length, has_cluster_id: Boolean(clusterId) }
}

const verbs = {
  create_topic,
  delete_topic,
  list_topics,
  describe_topic,
  topic_config,
  set_topic_config,
  add_partitions,
  delete_records,
  offsets,
  committed,
  list_groups,
  describe_group,
  delete_group,
  group_offsets,
  describe_cluster,
}

module.exports = Object.fromEntries(Object.entries(verbs).map(([name, work]) => [name, asAdmin(work)]))
