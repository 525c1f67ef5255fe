// What lidars saw: points as they came, put into the world and coloured by the graphics card. The newest turn of each lidar is whole; those before
// it fade.
import { Color, InterleavedBuffer, InterleavedBufferAttribute, Points, ShaderMaterial, BufferGeometry, type Object3D } from 'three'
import type { Cloud, SensorInfo } from '../app'

export type CloudColor = 'height' | 'intensity' | 'ring' | 'range'
export const cloudColors: CloudColor[] = ['height', 'intensity', 'ring', 'range']

// How points look: shared by all lidars, changed by the panel.
export const cloudLook = { color: 'height' as CloudColor, size: 2.5, trail: 0.3 }

const MAX_TURNS = 16 // of a lidar that are drawn
const LOST = 3 // periods after which the newest turn is of no more use: the lidar is dead

const VERTEX = /* glsl */ `
  attribute vec3 place;
  attribute vec2 mark;
  uniform float unit, size, low, high, rings, range, base;
  uniform int mode;
  uniform vec3 ramp[5];
  varying vec3 tint;
  void main() {
    vec3 p = place * unit;
    float share = mode == 0 ? (p.z + base - low) / max(high - low, 0.1)
      : mode == 1 ? sqrt(mark.x / 255.0)
      : mode == 2 ? mark.y / max(rings - 1.0, 1.0)
      : sqrt(length(p) / range);
    float at = clamp(share, 0.0, 1.0) * 4.0;
    int i = int(min(floor(at), 3.0));
    tint = mix(ramp[i], ramp[i + 1], at - float(i));
    vec4 seen = modelViewMatrix * vec4(p, 1.0);
    gl_Position = projectionMatrix * seen;
    gl_PointSize = clamp(size * (0.6 + 6.0 / max(-seen.z, 1.0)), 1.0, 4.0 * size);
  }
`
const FRAGMENT = /* glsl */ `
  uniform float shown;
  varying vec3 tint;
  void main() {
    vec2 r = gl_PointCoord - 0.5;
    if (dot(r, r) > 0.25) discard;
    gl_FragColor = vec4(tint, shown);
    #include <colorspace_fragment>
  }
`
// Dark blue, cyan, green, yellow, red: told apart on soil of any colour.
const RAMP = [0x3056d3, 0x23b5e8, 0x4ade80, 0xfacc15, 0xf4532f].map((hex) => new Color().setHex(hex, 'srgb'))

interface Turn {
  cloud: Cloud
  points: Points<BufferGeometry, ShaderMaterial>
}

export class LidarClouds {
  private turns: Turn[] = [] // the newest last
  private low = 0 // of the heights that colours stand for
  private high = 1

  constructor(
    private readonly scene: Object3D,
    private readonly sensor: SensorInfo,
  ) {}

  get n(): number {
    return this.turns.at(-1)?.cloud.n ?? 0
  }

  // The simulated time of the newest turn; undefined: none came yet.
  get time(): number | undefined {
    return this.turns.at(-1)?.cloud.time
  }

  add(cloud: Cloud): void {
    const last = this.turns.at(-1)
    if (last && cloud.time <= last.cloud.time) this.clear() // time has jumped
    if (cloud.n > 0) this.turns.push({ cloud, points: this.make(cloud) })
    while (this.turns.length > MAX_TURNS) this.drop()
    this.spanHeights(cloud)
  }

  update(now: number, on: boolean): void {
    const newest = this.turns.at(-1)
    const period = this.sensor.rate > 0 ? 1 / this.sensor.rate : 0.1
    if (newest && now - newest.cloud.time > (LOST + 1) * period + cloudLook.trail) this.clear()
    for (const turn of [...this.turns]) {
      const age = newest ? newest.cloud.time - turn.cloud.time : 0
      if (age > cloudLook.trail) {
        this.drop()
        continue
      }
      const u = turn.points.material.uniforms
      turn.points.visible = on
      u.shown.value = turn === newest ? 1 : 0.8 * (1 - age / cloudLook.trail)
      u.mode.value = cloudColors.indexOf(cloudLook.color)
      u.size.value = cloudLook.size
      u.low.value = this.low
      u.high.value = this.high
    }
  }

  clear(): void {
    while (this.turns.length > 0) this.drop()
  }

  private drop(): void {
    const turn = this.turns.shift()
    turn?.points.removeFromParent()
    turn?.points.geometry.dispose()
    turn?.points.material.dispose()
  }

  private make(cloud: Cloud): Points<BufferGeometry, ShaderMaterial> {
    const geometry = new BufferGeometry()
    const bytes = new Uint8Array(cloud.points.buffer, cloud.points.byteOffset, cloud.points.byteLength)
    geometry.setAttribute('place', new InterleavedBufferAttribute(new InterleavedBuffer(cloud.points, 4), 3, 0))
    geometry.setAttribute('mark', new InterleavedBufferAttribute(new InterleavedBuffer(bytes, 8), 2, 6))
    geometry.setDrawRange(0, cloud.n)
    const { rings = 1, range = 100 } = this.sensor
    const value = { unit: cloud.unit, size: 1, low: 0, high: 1, rings, range, base: cloud.origin[2], mode: 0, ramp: RAMP, shown: 1 }
    const uniforms = Object.fromEntries(Object.entries(value).map(([name, of]) => [name, { value: of }]))
    const material = new ShaderMaterial({ uniforms, vertexShader: VERTEX, fragmentShader: FRAGMENT, transparent: true, depthWrite: false, toneMapped: false })
    const points = new Points(geometry, material)
    points.position.set(...cloud.origin)
    points.frustumCulled = false
    points.raycast = () => undefined
    this.scene.add(points)
    return points
  }

  // Colours go from the fifth of a hundred points by height to the ninety-fifth, and follow slowly.
  private spanHeights(cloud: Cloud): void {
    const step = Math.max(1, Math.floor(cloud.n / 400))
    const heights: number[] = []
    for (let i = 0; i < cloud.n; i += step) heights.push((cloud.points[4 * i + 2] as number) * cloud.unit + cloud.origin[2])
    if (heights.length === 0) return
    heights.sort((a, b) => a - b)
    const low = heights[Math.floor(heights.length * 0.05)] as number
    const high = heights[Math.floor(heights.length * 0.95)] as number
    const share = this.turns.length > 1 ? 0.2 : 1
    this.low += share * (low - this.low)
    this.high += share * (high - this.high)
  }
}
