'use strict'
// Sends records individually, idempotently, or in transactions.

const { CompressionCodecs, CompressionTypes, Partitioners } = require('kafkajs')
const SnappyCodec = require('kafkajs-snappy')

const { connection, bytes } = require('./connection')
const { codeOf } = require('./errors')

CompressionCodecs[CompressionTypes.Snappy] = SnappyCodec
const CODECS = { none: CompressionTypes.None, gzip: CompressionTypes.GZIP, snappy: CompressionTypes.Snappy }

/** kafkajs returns only the base offset of each partition's batch, so the partitioner's choices are recorded. */
class Places {
  constructor() {
    this.chosen = new Map()
  }

  partitioner() {
    const choose = Partitioners.DefaultPartitioner()
    return given => {
      const partition = choose(given)
      this.chosen.set(given.message, partition)
      return partition
    }
  }

  /** Returns [partition, offset] for each message, or null if the broker returned no offset (acks=0). */
  of(messages, answer) {
    const next = new Map(answer.map(({ partition, baseOffset }) => [partition, Number(baseOffset)]))
    return messages.map(message => {
      const partition = this.chosen.get(message)
      this.chosen.delete(message)
      if (!next.has(partition)) return null
      const offset = next.get(partition)
      next.set(partition, offset + 1)
      return [partition, offset]
    })
  }
}

/** Values of headers with the same name are one list. */
function headers(pairs) {
  const found = {}
  for (const [name, value] of pairs) (found[name] = found[name] || []).push(bytes(value))
  return found
}

function message(record) {
  const made = { key: bytes(record.key), value: bytes(record.value), headers: headers(record.headers || []) }
  if (record.partition !== undefined) made.partition = record.partition
  if (record.timestamp !== undefined) made.timestamp = String(record.timestamp)
  return made
}

/** `sender` is a producer or a transaction. */
async function send(sender, places, topic, records, more = {}) {
  const messages = records.map(message)
  return places.of(messages, await sender.send({ topic, messages, ...more }))
}

async function produce({ bootstrap, topic, records, codec = 'none', acks = 'all', idempotent = false }) {
  const places = new Places()
  const createPartitioner = () => places.partitioner()
  const producer = connection(bootstrap).producer({ idempotent, createPartitioner })
  const more = { acks: acks === 'all' ? -1 : Number(acks), compression: CODECS[codec] }
  await producer.connect()
  try {
    return { results: await send(producer, places, topic, records, more) }
  } catch (error) {
    return { results: records.map(() => ({ error: codeOf(error) })) }
  } finally {
    await producer.disconnect()
  }
}

/** A producer with a transactional id, and its open transaction. */
class Transactional {
  constructor(bootstrap, id) {
    this.places = new Places()
    this.open = null
    // Transactions are always idempotent; with the option, kafkajs would request an additional producer id.
    this.producer = connection(bootstrap).producer({
      transactionalId: id,
      maxInFlightRequests: 1,
      createPartitioner: () => this.places.partitioner(),
    })
  }

  async begin(topic, records) {
    this.open = await this.producer.transaction()
    return { results: await send(this.open, this.places, topic, records) }
  }

  async end(how) {
    await (how === 'commit' ? this.open.commit() : this.open.abort())
    return {}
  }
}

const transactional = new Map()

async function producerOf(bootstrap, id) {
  if (!transactional.has(id)) {
    const made = new Transactional(bootstrap, id)
    await made.producer.connect()
    transactional.set(id, made)
  }
  return transactional.get(id)
}

async function transaction_open({ bootstrap, id, topic, records }) {
  return (await producerOf(bootstrap, id)).begin(topic, records)
}

async function transaction_end({ id, end }) {
  return transactional.get(id).end(end)
}

async function transaction({ end, ...request }) {
  const answer = await transaction_open(request)
  await transaction_end({ id: request.id, end })
  return answer
}

module.exports = { produce, transaction, transaction_open, transaction_end }
