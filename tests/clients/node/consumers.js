'use strict'
// Reads partitions without a shared group. kafkajs has only group consumers, so each reader has its own group.

const { randomUUID } = require('crypto')

const { connection, RETRY, text } = require('./connection')
const { OFFSET_OUT_OF_RANGE } = require('./errors')

const JOIN_MS = 30000
const RESET = 'Offset out of range, resetting to default offset'

function headers(found) {
  return Object.entries(found).flatMap(([name, values]) =>
    (Array.isArray(values) ? values : [values]).map(value => [name, text(value)])
  )
}

function described(partition, message) {
  return {
    partition,
    offset: Number(message.offset),
    key: text(message.key),
    value: text(message.value),
    timestamp: Number(message.timestamp),
    timestamp_type: message.batchContext.timestampType,
    headers: headers(message.headers),
  }
}

/** Returns at least `count` records from `start`, or those received within `timeout_s` after joining. */
async function consume({
  bootstrap,
  topic,
  partitions,
  start,
  count,
  reset = 'none',
  isolation = 'read_uncommitted',
  timeout_s: timeoutS = 20,
}) {
  let end, fail
  const ended = new Promise((resolve, reject) => ([end, fail] = [resolve, reject]))
  ended.catch(() => {}) // awaited below; avoids an unhandled rejection before that
  // kafkajs always has a reset policy, so with reset=none, falling back on the policy is the failure.
  const outside = Object.assign(new Error(RESET), { code: OFFSET_OUT_OF_RANGE })
  const kafka = connection(bootstrap, said => reset === 'none' && said === RESET && fail(outside))
  const consumer = kafka.consumer({
    groupId: `${topic}-reader-${randomUUID()}`, // the ACLs for this prefix also cover the group
    readUncommitted: isolation === 'read_uncommitted',
    maxWaitTimeInMs: 100,
    retry: { ...RETRY, restartOnFailure: async () => false },
  })
  const found = []
  const eachBatch = async ({ batch }) => {
    if (!partitions.includes(batch.partition) || found.length >= count) return
    found.push(...batch.messages.map(message => described(batch.partition, message)))
    if (found.length >= count) end()
  }
  consumer.on(consumer.events.CRASH, ({ payload }) => fail(payload.error))
  let timer = setTimeout(() => fail(new Error('the group could not be joined')), JOIN_MS)
  consumer.on(consumer.events.GROUP_JOIN, () => {
    clearTimeout(timer)
    timer = setTimeout(end, timeoutS * 1000)
  })
  try {
    await consumer.connect()
    // The group is new, so without a seek it starts at the reset position. (A seek to "-2" goes to 0.)
    const fromBeginning = start === 'earliest' || reset === 'earliest'
    await consumer.subscribe({ topics: [topic], fromBeginning })
    consumer.run({ eachBatch, autoCommit: false }).catch(fail)
    // Seeks apply to the first fetch, because the consumer has not joined the group yet.
    if (Number.isInteger(start)) {
      for (const partition of partitions) consumer.seek({ topic, partition, offset: String(start) })
    }
    await ended
  } finally {
    clearTimeout(timer)
    await consumer.disconnect()
  }
  return { records: found }
}

module.exports = { consume }
