// Where the eye is: free (orbit), led along by a body (follow), or on board of one.
import { MathUtils, PerspectiveCamera, Quaternion, Vector3, type Box3 } from 'three'
import { OrbitControls } from 'three/addons/controls/OrbitControls.js'
import type { Bodies } from './bodies'

export type CameraMode = 'orbit' | 'follow' | 'onboard'

const UP = new Vector3(0, 0, 1)
// A camera looks along its -z with y up; on board it looks along the body's x with z up.
const FORWARD = new Quaternion(0.5, -0.5, -0.5, 0.5)
const GLIDE = 0.35 // s, to what is focused
const ABOVE = 0.1 // m: no nearer to the ground

export class Cameras {
  readonly camera = new PerspectiveCamera(45, 1, 0.03, 3000)
  readonly controls: OrbitControls
  mode: CameraMode = 'orbit'
  body = -1
  isRigid = false // follows at once: no frames between pictures
  private readonly led = new Vector3() // where the followed body was, smoothed
  private isLed = false
  private readonly glide = { left: 0, target: new Vector3(), position: new Vector3() }
  private yaw = 0
  private pitch = -0.14
  private readonly isCalm = matchMedia('(prefers-reduced-motion: reduce)').matches

  constructor(
    private readonly canvas: HTMLCanvasElement,
    redraw: () => void,
  ) {
    this.camera.up.copy(UP)
    this.camera.position.set(-4, -5, 3)
    this.controls = new OrbitControls(this.camera, canvas)
    this.controls.enableDamping = true
    this.controls.dampingFactor = 0.14
    this.controls.minDistance = 0.15
    this.controls.maxDistance = 600
    this.controls.maxPolarAngle = Math.PI * 0.52
    this.controls.zoomToCursor = false
    this.controls.addEventListener('change', redraw)
    this.controls.addEventListener('start', () => (this.glide.left = 0))
    this.watchLook(redraw)
  }

  // On board, dragging turns the head.
  private watchLook(redraw: () => void): void {
    let last: { x: number; y: number } | null = null
    this.canvas.addEventListener('pointerdown', (event) => {
      if (this.mode === 'onboard') last = { x: event.clientX, y: event.clientY }
    })
    addEventListener('pointermove', (event) => {
      if (!last || this.mode !== 'onboard') return
      const turn = MathUtils.degToRad(this.camera.fov) / Math.max(this.canvas.clientHeight, 1)
      this.yaw += (event.clientX - last.x) * turn
      this.pitch = MathUtils.clamp(this.pitch + (event.clientY - last.y) * turn, -1.4, 1.4)
      last = { x: event.clientX, y: event.clientY }
      redraw()
    })
    const end = (): void => void (last = null)
    addEventListener('pointerup', end)
    addEventListener('pointercancel', end)
  }

  resize(width: number, height: number): void {
    this.camera.aspect = width / height
    // A tall narrow window sees as much to the sides as a square one would.
    const half = Math.tan(MathUtils.degToRad(45) / 2)
    this.camera.fov = MathUtils.radToDeg(2 * Math.atan(half * Math.min(Math.max(1 / this.camera.aspect, 1), 1.6)))
    this.camera.updateProjectionMatrix()
  }

  set(mode: CameraMode, body: number): void {
    const wasOnboard = this.mode === 'onboard'
    const isOther = body !== this.body
    this.mode = mode
    this.body = mode === 'orbit' ? -1 : body
    this.isLed = false
    this.controls.enabled = mode !== 'onboard'
    this.yaw = 0
    this.pitch = -0.14
    if (wasOnboard || (mode === 'follow' && isOther)) this.wantsFraming = true
  }
  private wantsFraming = false

  // Shows all of `box`, from behind and above when it has a heading.
  frame(box: Box3, heading: number | null, isSudden = false): void {
    if (box.isEmpty()) return
    const center = box.getCenter(new Vector3())
    const radius = Math.max(box.getSize(new Vector3()).length() / 2, 0.2)
    const fov = MathUtils.degToRad(this.camera.fov) * Math.min(this.camera.aspect, 1)
    const distance = (radius / Math.sin(fov / 2)) * 1.08
    const angle = heading === null ? -2.2 : heading + Math.PI + 0.62
    const eye = new Vector3(Math.cos(angle) * 0.9, Math.sin(angle) * 0.9, 0.3).normalize().multiplyScalar(distance).add(center)
    this.glideTo(center, eye, isSudden)
  }

  lookAt(point: Vector3, distance?: number): void {
    const eye = this.camera.position.clone().sub(this.controls.target)
    if (eye.lengthSq() === 0) eye.set(-1, -1, 0.6)
    eye.setLength(distance ?? eye.length()).add(point)
    this.glideTo(point, eye, false)
  }

  private glideTo(target: Vector3, position: Vector3, isSudden: boolean): void {
    if (isSudden || this.isCalm) {
      this.controls.target.copy(target)
      this.camera.position.copy(position)
      this.glide.left = 0
      return
    }
    this.glide.target.copy(target)
    this.glide.position.copy(position)
    this.glide.left = GLIDE
  }

  // Before each frame; true when the camera goes on moving by itself.
  update(bodies: Bodies | null, dt: number): boolean {
    const object = bodies && this.body >= 0 ? bodies.objects[this.body] : undefined
    if (this.mode === 'onboard' && object && bodies) {
      const box = bodies.boxes[this.body]
      const at = new Vector3(0, 0, 0.3)
      if (box && !box.isEmpty()) at.set((box.min.x + 2 * box.max.x) / 3, (box.min.y + box.max.y) / 2, box.max.z + 0.12)
      this.camera.position.copy(at).applyQuaternion(object.quaternion).add(object.position)
      const look = new Quaternion().setFromAxisAngle(UP, this.yaw)
      const nod = new Quaternion().setFromAxisAngle(new Vector3(1, 0, 0), this.pitch)
      this.camera.quaternion.copy(object.quaternion).multiply(look).multiply(FORWARD).multiply(nod)
      return false
    }
    if (this.wantsFraming && object && bodies) {
      const group = bodies.world.links[this.body]?.group ?? -1
      const box = group >= 0 ? bodies.boxOfGroup(group) : bodies.boxOf(this.body)
      this.frame(box, headingOf(object.quaternion), true)
    }
    this.wantsFraming = false
    if (this.mode === 'follow' && object) {
      if (!this.isLed) this.led.copy(object.position)
      this.isLed = true
      const jump = this.led.distanceTo(object.position)
      const step = object.position.clone().sub(this.led)
      if (jump < 3 && !this.isRigid) step.multiplyScalar(1 - Math.exp(-dt * 9))
      this.led.add(step)
      this.camera.position.add(step)
      this.controls.target.add(step)
      this.glide.target.add(step)
      this.glide.position.add(step)
    }
    if (this.glide.left > 0) {
      const part = Math.min(dt / this.glide.left, 1)
      const eased = part * (2 - part)
      this.controls.target.lerp(this.glide.target, eased)
      this.camera.position.lerp(this.glide.position, eased)
      this.glide.left = Math.max(0, this.glide.left - dt)
    }
    const isTurning = this.controls.update(dt)
    if (bodies?.raise(this.camera.position, ABOVE, this.distance())) this.camera.lookAt(this.controls.target)
    const isCatchingUp = this.mode === 'follow' && object !== undefined && this.led.distanceToSquared(object.position) > 1e-6
    return isTurning || isCatchingUp || this.glide.left > 0
  }

  // As far as there is something to see, and as near as the depths of both can be told apart.
  see(radius: number): void {
    const near = Math.max(0.03, this.distance() / 300)
    const far = Math.max(3000, 5 * radius)
    this.controls.maxDistance = Math.max(600, 3 * radius)
    if (Math.abs(near / this.camera.near - 1) < 0.1 && far === this.camera.far) return
    this.camera.near = near
    this.camera.far = far
    this.camera.updateProjectionMatrix()
  }

  distance(): number {
    return this.mode === 'onboard' ? 6 : this.camera.position.distanceTo(this.controls.target)
  }

  // What is looked at.
  center(): Vector3 {
    if (this.mode !== 'onboard') return this.controls.target
    return this.camera.getWorldDirection(new Vector3()).multiplyScalar(4).add(this.camera.position)
  }
}

export function headingOf(q: Quaternion): number {
  const x = new Vector3(1, 0, 0).applyQuaternion(q)
  return Math.atan2(x.y, x.x)
}
