// node mcap_decode.mjs FILE: reads a recording and decodes every message by the schema in the file, with code that others wrote (npm @mcap/core,
// @mcap/support, @foxglove/rosmsg, @foxglove/rosmsg2-serialization). Prints "TOPIC TYPE COUNT" per channel, then a few values.
import { createRequire } from "node:module";
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const require = createRequire(pathToFileURL(resolve(process.env.US_NPM, "..", "from.js")));
const { McapStreamReader } = require("@mcap/core");
const { loadDecompressHandlers } = require("@mcap/support");
const { parse } = require("@foxglove/rosmsg");
const { MessageReader } = require("@foxglove/rosmsg2-serialization");

const stream = new McapStreamReader({ validateCrcs: true, decompressHandlers: await loadDecompressHandlers() });
stream.append(await readFile(process.argv[2]));
const schemas = new Map();
const channels = new Map();
for (let record; (record = stream.nextRecord()); ) {
    if (record.type === "Schema") schemas.set(record.id, record);
    // The summary at the end names every channel again.
    if (record.type === "Channel" && !channels.has(record.id)) {
        const schema = schemas.get(record.schemaId);
        if (schema.encoding !== "ros2msg" || record.messageEncoding !== "cdr") throw new Error(`${record.topic}: ${schema.encoding}, ${record.messageEncoding}`);
        const text = new TextDecoder().decode(schema.data);
        channels.set(record.id, { topic: record.topic, type: schema.name, reader: new MessageReader(parse(text, { ros2: true })), n: 0, last: undefined });
    }
    if (record.type === "Message") {
        const channel = channels.get(record.channelId);
        channel.last = channel.reader.readMessage(record.data);
        channel.n++;
    }
}
if (!stream.done()) throw new Error("the file has no end");
for (const c of channels.values()) console.log(`${c.topic} ${c.type} ${c.n}`);
const last = (topic) => [...channels.values()].find((c) => c.topic === topic)?.last;
console.log(`joints ${last("/k10/joint_states").name.length} first ${last("/k10/joint_states").name[0]}`);
console.log(`frame ${last("/k10/odom").header.frame_id} stamp ${last("/k10/odom").header.stamp.sec}`);
console.log(`tick ${last("/understudy/ticks").tick}`);
