// node foxglove_scene.mjs ws://localhost:PORT LAYOUT: looks at the scene, fetches its meshes, calls services and sets parameters, as Foxglove would, with
// code that others wrote (npm @foxglove/ws-protocol, @foxglove/schemas, @foxglove/rosmsg, @foxglove/rosmsg2-serialization, ws).
import { createRequire } from "node:module";
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const require = createRequire(pathToFileURL(resolve(process.env.US_NPM, "..", "from.js")));
const { FoxgloveClient } = require("@foxglove/ws-protocol");
const { WebSocket } = require("ws");
const { parse } = require("@foxglove/rosmsg");
const { MessageReader, MessageWriter } = require("@foxglove/rosmsg2-serialization");
const { foxgloveMessageSchemas, generateRosMsgMergedSchema } = require("@foxglove/schemas/internal");

const client = new FoxgloveClient({ ws: new WebSocket(process.argv[2], [FoxgloveClient.SUPPORTED_SUBPROTOCOL]) });
const channels = new Map();
const services = new Map();
const readers = new Map();
const entities = new Map(); // of each topic: id -> entity
const updates = new Map();
const messages = new Map();
const parameters = [];
const assets = new Map();
const calls = new Map();
const errors = [];
const waiting = [];
let info;

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
const must = (is, text) => is || fail(text);

client.on("serverInfo", (event) => ((info = event), check()));
client.on("status", (event) => (errors.push(event.message), check()));
client.on("error", (error) => fail(`error: ${error.message ?? error}`));
client.on("close", () => fail("closed"));
client.on("advertise", (list) => (list.forEach((c) => channels.set(c.topic, c)), check()));
client.on("advertiseServices", (list) => (list.forEach((s) => services.set(s.name, s)), check()));
client.on("parameterValues", (event) => (parameters.push(event), check()));
client.on("serviceCallResponse", (event) => (calls.set(event.callId, event), check()));
client.on("serviceCallFailure", (event) => (calls.set(event.callId, event), check()));
client.on("fetchAssetResponse", (event) => (assets.set(event.requestId, event), check()));
client.on("message", ({ subscriptionId, data }) => {
    const { topic, reader } = readers.get(subscriptionId);
    const message = reader.readMessage(data);
    messages.set(topic, message);
    updates.set(topic, (updates.get(topic) ?? 0) + 1);
    if (message.entities) {
        if (!entities.has(topic) || message.deletions.some((d) => d.type === 1)) entities.set(topic, new Map());
        for (const e of message.entities) entities.get(topic).set(e.id, e);
    }
    check();
});
const subscribe = (topic) => {
    const c = channels.get(topic);
    const id = client.subscribe(c.id);
    readers.set(id, { topic, reader: new MessageReader(parse(c.schema, { ros2: true })) });
    return id;
};

await until(() => info && channels.size > 0 && services.size > 0);
for (const what of ["time", "clientPublish", "services", "parameters", "parametersSubscribe", "assets"]) must(info.capabilities.includes(what), what);

// ---- the layout names topics that there are ----
const layout = JSON.parse(await readFile(process.argv[3], "utf8"));
const named = new Set();
const walk = (node) => {
    if (typeof node === "string") {
        // Paths go on behind the topic: "/k10/odom.twist.twist.linear.x".
        if (/^\/[a-z]/.test(node)) named.add(node.split(".")[0]);
    } else if (node && typeof node === "object") {
        for (const [key, value] of Object.entries(node)) {
            if (/^\/[a-z]/.test(key)) named.add(key);
            walk(value);
        }
    }
};
walk(layout);
must(layout.configById && layout.layout && named.size > 5, "this is no layout");
const panels = [];
const list = (node) => (typeof node === "string" ? panels.push(node) : node && (list(node.first), list(node.second)));
list(layout.layout);
for (const panel of panels) must(layout.configById[panel], `the layout has no panel ${panel}`);
const listens = ["/k10/cmd_vel"]; // what a robot obeys is no channel
for (const topic of named) must(channels.has(topic) || services.has(topic) || listens.includes(topic), `the layout names ${topic}, which is not there`);
console.log(`layout names ${named.size > 5 ? "what is there" : "nothing"}`);

// ---- the scene ----
const contents = ["still", "moving", "contacts", "ground", "ruts"].map((name) => `/understudy/scene/${name}`);
const theirs = parse(generateRosMsgMergedSchema(foxgloveMessageSchemas.SceneUpdate, { rosVersion: 2 }), { ros2: true });
const plain = (definitions) =>
    definitions
        .filter((d) => !d.name?.startsWith("builtin_interfaces/")) // which they take for granted
        .map((d, i) => [i === 0 ? "" : d.name, d.definitions.filter((f) => !f.isConstant).map((f) => `${f.type} ${f.name} ${f.isArray ?? false} ${f.isComplex ?? false}`)])
        .sort((a, b) => (a[0] < b[0] ? -1 : 1));
for (const topic of contents) {
    const c = channels.get(topic);
    must(c && c.schemaName === "foxglove_msgs/msg/SceneUpdate" && c.encoding === "cdr", topic);
    must(JSON.stringify(plain(parse(c.schema, { ros2: true }))) === JSON.stringify(plain(theirs)), `${topic}: another schema than Foxglove's`);
}
const ids = new Map(contents.map((topic) => [topic, subscribe(topic)]));
subscribe("/understudy/truth/k10/odom");
subscribe("/k10/robot_description");
await until(() => contents.every((topic) => updates.has(topic)) && messages.has("/understudy/truth/k10/odom") && messages.has("/k10/robot_description"));
const find = (content, id) => entities.get(`/understudy/scene/${content}`)?.get(id);
for (const topic of contents) for (const e of entities.get(topic).values()) must(e.frame_id === "map", `${topic}: ${e.frame_id}`);

const box = find("still", "world/slab")?.cubes[0];
must(box && box.size.x === 2 && box.size.y === 1 && box.size.z === 0.5 && box.pose.position.x === 5 && box.color.r === 0.25, "slab");
const capsule = find("still", "world/pill")?.triangles[0];
must(capsule && capsule.indices.length > 100 && capsule.indices.every((i) => i < capsule.points.length), "pill");
// A capsule of radius 0.2 with 0.6 between the middles of its ends, lying at its place: all of it is within 0.2 of that line, and some at its ends.
const off = capsule.points.map((p) => Math.hypot(p.x, p.y, p.z - Math.max(-0.3, Math.min(0.3, p.z))));
must(Math.max(...off) < 0.2 + 1e-9 && Math.min(...off) > 0.2 - 1e-9 && Math.abs(Math.max(...capsule.points.map((p) => p.z)) - 0.5) < 1e-9, "pill's points");
const model = find("still", "world/stone")?.models[0];
must(model && model.url.startsWith("package://understudy/") && model.media_type === "model/gltf-binary", "stone");
// Who shows glTF turns it by 90 degrees about x, since there y is up; before it the pose turns it back.
must(Math.abs(model.pose.orientation.x + Math.SQRT1_2) < 1e-12 && Math.abs(model.pose.orientation.w - Math.SQRT1_2) < 1e-12, "stone's up");
const ground = find("ground", "world/ground").triangles[0];
must(ground.points.length === 81 * 81 && ground.indices.length > 0, `ground: ${ground.points.length}`);
must(ground.points.every((p) => Math.abs(p.z) < 1e-6) && Math.abs(ground.points[0].x + 4) < 1e-9 && Math.abs(ground.points[0].y + 4) < 1e-9, "ground's points");
const base = () => find("moving", "k10/base");
const truth = () => messages.get("/understudy/truth/k10/odom").pose.pose.position;
must(base() && base().cubes.length + base().cylinders.length + base().triangles.length > 0, "the robot's base");
await until(() => find("contacts", "contacts")?.lines[0].points.length >= 8);
const line = find("contacts", "contacts").lines[0];
must(line.type === 2 && line.points.length % 2 === 0, "contacts");
// Forces hold the robot and nothing more: their sum is its weight. It stands, and the solver leaves next to nothing: a hundredth.
let mass = 0;
for (const m of messages.get("/k10/robot_description").data.matchAll(/<mass value="([^"]+)"/g)) mass += Number(m[1]);
const force = () => {
    const p = find("contacts", "contacts").lines[0].points;
    return p.reduce((sum, q, i) => sum + ((i % 2 ? 1 : -1) * q.z) / 1e-3, 0);
};
await until(() => Math.abs(force() / 9.81 - mass) < 0.01 * mass);
const deepest = () => Math.min(...[...entities.get("/understudy/scene/ruts").values()].flatMap((e) => e.triangles[0].points.map((q) => q.z)));
// What stands leaves nothing to see: it has to drive.
const twist = new MessageWriter(parse("geometry_msgs/Vector3 linear\ngeometry_msgs/Vector3 angular\n================\nMSG: geometry_msgs/Vector3\nfloat64 x\nfloat64 y\nfloat64 z", { ros2: true }));
const say = client.advertise({ topic: "/k10/cmd_vel", encoding: "cdr", schemaName: "geometry_msgs/msg/Twist", schema: "", schemaEncoding: "ros2msg" });
const drive = setInterval(() => client.sendMessage(say, twist.writeMessage({ linear: { x: 0.4, y: 0, z: 0 }, angular: { x: 0, y: 0, z: 0 } })), 100);
await until(() => deepest() < -1e-4);
clearInterval(drive);
console.log("scene is there");

// ---- what nobody wants is not sent; who comes again gets all ----
for (const topic of contents) client.unsubscribe(ids.get(topic));
const before = messages.get("/understudy/truth/k10/odom").header.stamp;
await until(() => messages.get("/understudy/truth/k10/odom").header.stamp.sec > before.sec + 1);
const counts = contents.map((topic) => updates.get(topic));
await until(() => messages.get("/understudy/truth/k10/odom").header.stamp.sec > before.sec + 2);
must(JSON.stringify(counts) === JSON.stringify(contents.map((topic) => updates.get(topic))), "sent to nobody");
entities.clear();
for (const topic of contents) subscribe(topic);
await until(() => find("still", "world/slab") && base() && find("ground", "world/ground"));
const p = base().cubes[0]?.pose.position ?? base().cylinders[0]?.pose.position ?? base().triangles[0].pose.position;
must(Math.hypot(p.x - truth().x, p.y - truth().y) < 1.5, "the robot is elsewhere");

// ---- files ----
client.fetchAsset(model.url, 7);
client.fetchAsset(model.url.replace("package://understudy/", "/api/asset/"), 8);
client.fetchAsset("stone.stl", 9);
client.fetchAsset("package://elsewhere/stone.stl", 10);
client.fetchAsset("file:///etc/passwd", 11);
client.fetchAsset("package://understudy/99/0.glb", 12);
client.fetchAsset("/api/asset/1/../../../../etc/passwd", 13);
await until(() => assets.size === 7);
const bytes = (id) => Buffer.from(assets.get(id).data.buffer, assets.get(id).data.byteOffset, assets.get(id).data.byteLength);
must(assets.get(7).status === 0 && bytes(7).subarray(0, 4).toString() === "glTF" && bytes(7).readUInt32LE(8) === bytes(7).length, "glTF");
must(bytes(7).equals(bytes(8)), "two files of one mesh");
must(assets.get(9).status === 0 && bytes(9).equals(await readFile("stone.stl")), "the mesh's own file");
for (const id of [10, 11, 12, 13]) must(assets.get(id).status === 1 && assets.get(id).error.length > 10, `asset ${id}`);
console.log("files are served");

// ---- parameters ----
client.getParameters([], "all");
await until(() => parameters.some((e) => e.id === "all"));
const all = parameters.find((e) => e.id === "all").parameters;
must(all.find((q) => q.name === "/understudy/rate").value === 1 && all.find((q) => q.name === "/understudy/paused").value === false, "values");
client.subscribeParameterUpdates(["/understudy/paused"]);
client.setParameters([{ name: "/understudy/rate", value: 2 }, { name: "/understudy/paused", value: true }], "set");
await until(() => parameters.some((e) => e.id === "set"));
const set = parameters.find((e) => e.id === "set").parameters;
must(set.length === 2 && set[0].value === 2 && set[1].value === true, "set");
client.setParameters([{ name: "/understudy/scene", value: "x" }], "none");
client.setParameters([{ name: "/understudy/rate", value: "fast" }], "none either");
client.setParameters([{ name: "/nothing", value: 1 }], "unknown");
await until(() => ["none", "none either", "unknown"].every((id) => parameters.some((e) => e.id === id)));
await until(() => errors.length >= 3);
must(errors.some((e) => e.includes("/understudy/scene: it cannot be set")) && errors.some((e) => e.includes("/nothing: there is no such parameter")), errors.join("; "));

// ---- services ----
const call = (name, id, data) => client.sendServiceCallRequest({ serviceId: services.get(name).id, callId: id, encoding: "cdr", data });
const answer = (id) => new MessageReader(parse(services.get("/understudy/resume").responseSchema, { ros2: true })).readMessage(calls.get(id).data);
const empty = new Uint8Array([0, 1, 0, 0, 0]);
const told = new MessageWriter(parse("string command", { ros2: true }));
const seen = parameters.length;
call("/understudy/resume", 1, empty);
await until(() => calls.has(1));
must(answer(1).success === true, "resume");
await until(() => parameters.slice(seen).some((e) => !e.id && e.parameters[0].name === "/understudy/paused" && e.parameters[0].value === false));
call("/understudy/tell", 2, told.writeMessage({ command: "add box crate size=0.5,0.5,0.5 at=5,0,2" }));
call("/understudy/tell", 3, told.writeMessage({ command: "fly away" }));
call("/understudy/tell", 4, new Uint8Array([0, 1, 0, 0, 200, 0, 0, 0]));
await until(() => calls.has(2) && calls.has(3) && calls.has(4));
must(answer(2).success === true && answer(3).success === false && answer(3).message.length > 5, "tell");
must(calls.get(4).op === "serviceCallFailure" && calls.get(4).message.length > 10, "a request that is none");
// The world has another part from now on, and falls.
await until(() => find("moving", "crate/body")?.cubes[0].pose.position.z < 1.5);
const fallen = () => find("moving", "crate/body").cubes[0].pose.position.z;
await until(() => Math.abs(fallen() - 0.5) < 0.01); // on the slab
console.log("services and parameters work");
process.exit(0);
