// node mcap_decode.mjs FILE: reads a recording and decodes every message by the schema in the file, with code that others wrote (npm @mcap/core,
// @mcap/support, @foxglove/rosmsg, @foxglove/rosmsg2-serialization, yaml). Prints "TOPIC TYPE COUNT" per channel, then a few values,
// and what rosbag2 would offer of each topic, read as rosbag2 reads it.
import { createRequire } from "node:module";
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const require = createRequire(pathToFileURL(resolve(process.env.US_NPM, "..", "from.js")));
const { McapStreamReader } = require("@mcap/core");
const { loadDecompressHandlers } = require("@mcap/support");
const { parse } = require("@foxglove/rosmsg");
const { MessageReader } = require("@foxglove/rosmsg2-serialization");
const yaml = require("yaml");

const stream = new McapStreamReader({ validateCrcs: true, decompressHandlers: await loadDecompressHandlers() });
stream.append(await readFile(process.argv[2]));
const schemas = new Map();
const channels = new Map();
const bags = []; // texts of the metadata records for rosbag2
for (let record; (record = stream.nextRecord()); ) {
    if (record.type === "Schema") schemas.set(record.id, record);
    // The summary at the end names every channel again.
    if (record.type === "Channel" && !channels.has(record.id)) {
        const schema = schemas.get(record.schemaId);
        if (schema.encoding !== "ros2msg" || record.messageEncoding !== "cdr") throw new Error(`${record.topic}: ${schema.encoding}, ${record.messageEncoding}`);
        const text = new TextDecoder().decode(schema.data);
        const offered = record.metadata.get("offered_qos_profiles");
        channels.set(record.id, { topic: record.topic, type: schema.name, offered, hash: record.metadata.get("topic_type_hash"), reader: new MessageReader(parse(text, { ros2: true })), n: 0, last: undefined });
    }
    if (record.type === "Metadata" && record.name === "rosbag2") bags.push(record.metadata.get("serialized_metadata"));
    if (record.type === "Message") {
        const channel = channels.get(record.channelId);
        channel.last = channel.reader.readMessage(record.data);
        channel.n++;
    }
}
if (!stream.done()) throw new Error("the file has no end");
for (const c of channels.values()) console.log(`${c.topic} ${c.type} ${c.n}`);

// Policies are numbers up to version 8 of the metadata. Every key that the reader of rosbag2 asks for has to be there.
const whole = (value, what) => {
    if (!Number.isInteger(value) || value < 0) throw new Error(`${what}: ${value} is no whole number`);
    return value;
};
const profiles = (text, topic) => {
    const list = text === "" ? [] : yaml.parse(text, { intAsBigInt: false });
    if (!Array.isArray(list)) throw new Error(`${topic}: no list of profiles`);
    return list.map((p) => {
        for (const key of ["history", "depth", "reliability", "durability", "liveliness"]) whole(p[key], `${topic} ${key}`);
        for (const key of ["deadline", "lifespan", "liveliness_lease_duration"]) {
            whole(p[key].sec, `${topic} ${key}`);
            whole(p[key].nsec, `${topic} ${key}`);
        }
        if (typeof p.avoid_ros_namespace_conventions !== "boolean") throw new Error(`${topic}: no truth value`);
        return `history ${p.history} depth ${p.depth} reliability ${p.reliability} durability ${p.durability}`;
    });
};
const texts = ["storage_identifier", "compression_format", "compression_mode", "ros_distro"];
const begins = yaml.parse(bags[0]);
const bag = yaml.parse(bags.at(-1));
for (const b of [begins, bag]) {
    if (b.version !== 8 || b.storage_identifier !== "mcap") throw new Error("version or storage of the bag");
    for (const key of texts) if (typeof b[key] !== "string") throw new Error(`${key} of the bag`);
    if (b.custom_data !== null || !Array.isArray(b.topics_with_message_count)) throw new Error("lists of the bag");
    for (const f of [b, ...b.files]) {
        whole(f.duration.nanoseconds, "duration");
        whole(f.starting_time.nanoseconds_since_epoch, "starting_time");
        whole(f.message_count, "message_count");
    }
}
console.log(`bag records ${bags.length} messages ${bag.message_count} duration ${bag.duration.nanoseconds} file ${bag.relative_file_paths[0]} ${bag.files[0].path}`);
if (bag.topics_with_message_count.length !== channels.size) throw new Error("topics of the bag");
for (const t of bag.topics_with_message_count) {
    const c = [...channels.values()].find((x) => x.topic === t.topic_metadata.name && x.type === t.topic_metadata.type);
    const m = t.topic_metadata;
    if (!c || c.n !== t.message_count || c.offered !== m.offered_qos_profiles || c.hash !== m.type_description_hash) throw new Error(`${m.name} of the bag`);
    if (m.serialization_format !== "cdr") throw new Error(`${m.name}: ${m.serialization_format}`);
    console.log(`offers ${m.name} ${profiles(m.offered_qos_profiles, m.name).join(", ")}`);
}
const last = (topic) => [...channels.values()].find((c) => c.topic === topic)?.last;
console.log(`joints ${last("/k10/joint_states").name.length} first ${last("/k10/joint_states").name[0]}`);
console.log(`frame ${last("/k10/odom").header.frame_id} stamp ${last("/k10/odom").header.stamp.sec}`);
console.log(`tick ${last("/understudy/ticks").tick}`);
