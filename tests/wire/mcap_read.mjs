// node mcap_read.mjs FILE: reads an MCAP file with the public reader (npm @mcap/core, @mcap/support) and prints what is in it as JSON.
// US_NPM names the node_modules directory.
import { createRequire } from "node:module";
import { open, readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const require = createRequire(pathToFileURL(resolve(process.env.US_NPM, "..", "from.js")));
const { McapIndexedReader, McapStreamReader } = require("@mcap/core");
const { loadDecompressHandlers } = require("@mcap/support");

const path = process.argv[2];
const decompressHandlers = await loadDecompressHandlers();
const encoder = new TextEncoder();

// 32-bit FNV-1a.
function fnv(hash, bytes) {
    for (const byte of bytes) hash = Math.imul(hash ^ byte, 16777619) >>> 0;
    return hash;
}
function line(topic, m) {
    return encoder.encode(`${topic} ${m.sequence} ${m.logTime} ${m.publishTime} ${m.data.byteLength} `);
}

const result = { streamed: 0, hash: 2166136261, streamed_sum: 0, indexed: 0, indexed_sum: 0, channels: [], attachments: [], metadata: [] };

// From the first byte to the last, every checksum compared.
const stream = new McapStreamReader({ validateCrcs: true, decompressHandlers });
stream.append(await readFile(path));
const topics = new Map();
for (let record; (record = stream.nextRecord()); ) {
    if (record.type === "Channel") topics.set(record.id, record.topic);
    if (record.type === "Message") {
        const head = line(topics.get(record.channelId), record);
        result.hash = fnv(fnv(result.hash, head), record.data);
        result.streamed_sum = (result.streamed_sum + fnv(fnv(0, head), record.data)) % 0x100000000;
        result.streamed++;
    }
}
if (!stream.done()) throw new Error("the file has no end");

// Through summary and indices. The messages come in another order, so that their hashes are summed.
const file = await open(path);
const readable = {
    size: async () => BigInt((await file.stat()).size),
    read: async (offset, length) => {
        const buffer = new Uint8Array(Number(length));
        const { bytesRead } = await file.read(buffer, 0, Number(length), Number(offset));
        if (bytesRead !== Number(length)) throw new Error("read beyond the end");
        return buffer;
    },
};
const reader = await McapIndexedReader.Initialize({ readable, decompressHandlers });
result.profile = reader.header.profile;
result.library = reader.header.library;
let before = 0n;
for await (const m of reader.readMessages()) {
    if (m.logTime < before) throw new Error("the indexed reader went back in time");
    before = m.logTime;
    const head = line(reader.channelsById.get(m.channelId).topic, m);
    result.indexed_sum = (result.indexed_sum + fnv(fnv(0, head), m.data)) % 0x100000000;
    result.indexed++;
}
const s = reader.statistics;
result.statistics = {
    messages: Number(s.messageCount),
    schemas: s.schemaCount,
    channels: s.channelCount,
    attachments: s.attachmentCount,
    metadata: s.metadataCount,
    chunks: s.chunkCount,
    first: Number(s.messageStartTime),
    last: Number(s.messageEndTime),
};
for (const channel of reader.channelsById.values()) {
    const schema = reader.schemasById.get(channel.schemaId);
    result.channels.push({
        topic: channel.topic,
        encoding: channel.messageEncoding,
        type: schema.name,
        schema_encoding: schema.encoding,
        schema: new TextDecoder().decode(schema.data),
        qos: channel.metadata.get("offered_qos_profiles"),
        count: Number(s.channelMessageCounts.get(channel.id)),
    });
}
for await (const a of reader.readAttachments({ validateCrcs: true })) {
    result.attachments.push({
        name: a.name,
        media_type: a.mediaType,
        text: new TextDecoder().decode(a.data),
        log_time: Number(a.logTime),
        create_time: Number(a.createTime),
    });
}
for await (const m of reader.readMetadata()) result.metadata.push({ name: m.name, ...Object.fromEntries(m.metadata) });
await file.close();
console.log(JSON.stringify(result));
