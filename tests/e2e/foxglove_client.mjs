// node foxglove_client.mjs ws://localhost:PORT: connects to a run with the client that others wrote (npm @foxglove/ws-protocol, ws), subscribes to
// what the robot k10 says, decodes it by the advertised schemas (@foxglove/rosmsg, @foxglove/rosmsg2-serialization), and drives it.
import { createRequire } from "node:module";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const require = createRequire(pathToFileURL(resolve(process.env.US_NPM, "..", "from.js")));
const { FoxgloveClient } = require("@foxglove/ws-protocol");
const { WebSocket } = require("ws");
const { parse } = require("@foxglove/rosmsg");
const { MessageReader, MessageWriter } = require("@foxglove/rosmsg2-serialization");

const client = new FoxgloveClient({ ws: new WebSocket(process.argv[2], [FoxgloveClient.SUPPORTED_SUBPROTOCOL]) });
const channels = new Map(); // topic -> channel
const readers = new Map(); // subscription -> topic and reader
const last = new Map(); // topic -> message
const counts = new Map();
const waiting = []; // conditions, each with what to do when it holds
let info, time;

const check = () => {
    for (let i = 0; i < waiting.length; ) {
        if (waiting[i].condition()) waiting.splice(i, 1)[0].resolve();
        else i++;
    }
};
const until = (condition) => new Promise((done) => waiting.push({ condition, resolve: done }) && check());
const fail = (text) => {
    console.error(text);
    process.exit(1);
};

client.on("serverInfo", (event) => ((info = event), check()));
client.on("status", (event) => event.level > 0 && fail(`status: ${event.message}`));
client.on("error", (error) => fail(`error: ${error.message ?? error}`));
client.on("close", () => fail("closed"));
client.on("time", (event) => ((time = event.timestamp), check()));
client.on("advertise", (list) => {
    for (const c of list) channels.set(c.topic, c);
    check();
});
client.on("message", ({ subscriptionId, timestamp, data }) => {
    const { topic, reader } = readers.get(subscriptionId);
    last.set(topic, { timestamp, message: reader.readMessage(data) });
    counts.set(topic, (counts.get(topic) ?? 0) + 1);
    check();
});

await until(() => info && channels.size > 0);
if (!info.capabilities.includes("clientPublish") || !info.supportedEncodings.includes("cdr")) fail("clients cannot publish");
for (const c of channels.values()) {
    if (c.encoding !== "cdr" || c.schemaEncoding !== "ros2msg") fail(`${c.topic}: ${c.encoding}, ${c.schemaEncoding}`);
    const reader = new MessageReader(parse(c.schema, { ros2: true }));
    readers.set(client.subscribe(c.id), { topic: c.topic, reader });
}
const topics = ["/k10/odom", "/k10/joint_states", "/tf", "/k10/robot_description", "/clock"];
await until(() => time !== undefined && topics.every((topic) => counts.has(topic)) && counts.get("/k10/odom") >= 10);
for (const [topic, n] of counts) console.log(`${topic} ${channels.get(topic).schemaName} ${n > 0 ? "heard" : "silent"}`);
const joints = last.get("/k10/joint_states").message;
console.log(`joints ${joints.name.length} first ${joints.name[0]}`);

const place = () => last.get("/k10/odom").message.pose.pose.position;
const begin = place();
const stamp = last.get("/k10/odom").message.header.stamp;
if (last.get("/k10/odom").timestamp !== BigInt(stamp.sec) * 1000000000n + BigInt(stamp.nsec ?? stamp.nanosec)) fail("the two times of a sample differ");
console.log(`moved by itself ${Math.hypot(begin.x, begin.y).toFixed(2)}`);

// A Twist, as the definition that comes with ROS has it.
const schema = `geometry_msgs/Vector3 linear
geometry_msgs/Vector3 angular
================================================================================
MSG: geometry_msgs/Vector3
float64 x
float64 y
float64 z`;
const writer = new MessageWriter(parse(schema, { ros2: true }));
const channel = client.advertise({ topic: "/k10/cmd_vel", encoding: "cdr", schemaName: "geometry_msgs/msg/Twist", schema, schemaEncoding: "ros2msg" });
const twist = writer.writeMessage({ linear: { x: 0.3, y: 0, z: 0 }, angular: { x: 0, y: 0, z: 0 } });
// With every message of its odometry: the robot stops when nobody speaks to it.
client.on("message", ({ subscriptionId }) => {
    if (readers.get(subscriptionId).topic === "/k10/odom") client.sendMessage(channel, twist);
});
client.sendMessage(channel, twist);
await until(() => Math.hypot(place().x - begin.x, place().y - begin.y) > 0.1);
console.log("moved when driven: yes");
process.exit(0);
