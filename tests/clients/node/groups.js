'use strict'
// Group members and committed offsets.

const { connection, RETRY } = require('./connection')

/** The assignment and records of a member. A batch counts as read once it is passed to the member. */
class Member {
  constructor(consumer) {
    this.consumer = consumer
    this.assignment = []
    this.received = []
    this.failure = null
    this.next = new Map()
    consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => this.joined(payload.memberAssignment))
    consumer.on(consumer.events.CRASH, ({ payload }) => this.failed(payload.error))
  }

  failed(error) {
    this.failure = String(error)
  }

  joined(assigned) {
    this.assignment = Object.entries(assigned).flatMap(([topic, numbers]) =>
      numbers.map(partition => [topic, partition])
    )
    this.next.clear() // the member continues from the committed offsets
  }

  /** Starts joining; member_state reports failures. */
  start(topics) {
    this.join(topics).catch(error => this.failed(error))
  }

  async join(topics) {
    await this.consumer.connect()
    await this.consumer.subscribe({ topics, fromBeginning: true })
    const eachBatch = async ({ batch: { topic, partition, messages } }) => {
      this.received.push(...messages.map(({ offset }) => [topic, partition, Number(offset)]))
      const offset = String(Number(messages[messages.length - 1].offset) + 1)
      this.next.set(`${topic}/${partition}`, { topic, partition, offset })
    }
    await this.consumer.run({ eachBatch, autoCommit: false })
  }
}

const members = new Map()

async function member_start({ bootstrap, member, group, topics, session_timeout_ms: sessionTimeout = 6000 }) {
  const consumer = connection(bootstrap).consumer({
    groupId: group,
    sessionTimeout,
    heartbeatInterval: 300,
    maxWaitTimeInMs: 100, // heartbeats are sent only between two fetches
    metadataMaxAge: 1000,
  })
  const started = new Member(consumer)
  members.set(member, started)
  started.start(topics)
  return {}
}

async function member_state({ member }) {
  const { assignment, received, failure } = members.get(member)
  return { assignment: [...assignment].sort(), received, failure }
}

async function member_commit({ member }) {
  const { consumer, next } = members.get(member)
  if (next.size > 0) await consumer.commitOffsets([...next.values()])
  return {}
}

async function member_stop({ member }) {
  const { consumer } = members.get(member)
  members.delete(member)
  await consumer.disconnect()
  return {}
}

/** kafkajs allows only members to commit metadata. */
async function commit({ bootstrap, group, topic, offsets }) {
  const consumer = connection(bootstrap).consumer({ groupId: group, maxWaitTimeInMs: 100, retry: RETRY })
  const joined = new Promise((resolve, reject) => {
    consumer.on(consumer.events.GROUP_JOIN, resolve)
    consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error))
  })
  joined.catch(() => {}) // awaited below
  try {
    await consumer.connect()
    await consumer.subscribe({ topics: [topic] })
    await consumer.run({ eachBatch: async () => {}, autoCommit: false })
    consumer.pause([{ topic }])
    await joined
    await consumer.commitOffsets(
      Object.entries(offsets).map(([number, [offset, metadata]]) => ({
        topic,
        partition: Number(number),
        offset: String(offset),
        metadata,
      }))
    )
  } finally {
    await consumer.disconnect()
  }
  return {}
}

module.exports = { member_start, member_state, member_commit, member_stop, commit }
