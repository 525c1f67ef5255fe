// Points of every lidar, where its beams met something.
import type { App, Layer, World } from '../app'
import { LidarClouds } from '../view/clouds'

// Points of each lidar that are asked for: what a screen can tell apart, and fewer where graphics are drawn in software.
const WANTED = 40_000
const WANTED_WEAK = 8_000

let clouds = new Map<number, LidarClouds>()
let isOn = false

function ask(app: App): void {
  app.wantPoints(isOn && clouds.size > 0 ? (app.view.isWeak ? WANTED_WEAK : WANTED) : 0)
}

function build(app: App, world: World): void {
  for (const one of clouds.values()) one.clear()
  clouds = new Map()
  for (const sensor of world.sensors) if (sensor.lidar !== undefined) clouds.set(sensor.lidar, new LidarClouds(app.view.scene, sensor))
  ask(app)
}

// What is drawn of a lidar now: points, and the time of its newest turn.
export function lidarState(lidar: number): { n: number; time: number | undefined } {
  const one = clouds.get(lidar)
  return { n: one?.n ?? 0, time: one?.time }
}

const layer: Layer = {
  id: 'lidar',
  title: 'Lidar points',
  order: 58,
  on: true,
  create(app) {
    app.on('cloud', (cloud) => {
      clouds.get(cloud.lidar)?.add(cloud)
      app.view.redraw()
    })
  },
  world(app, world) {
    build(app, world)
  },
  show(app, on) {
    isOn = on
    for (const one of clouds.values()) on ? one.update(app.time, on) : one.clear()
    ask(app)
  },
  frame(app) {
    for (const one of clouds.values()) one.update(app.time, isOn)
  },
}
export default layer
