// The 3-D view: draws the world when something in it has changed, and answers what is where.
import { AgXToneMapping, Box3, Fog, NoToneMapping, Object3D, PCFShadowMap, Raycaster, Scene, Vector2, Vector3, WebGLRenderer } from 'three'
import type { PerspectiveCamera } from 'three'
import type { App, Layer, Quat, Selection, ShapeInfo, Vec3, View, World } from '../app'
import { Assets } from './assets'
import { Bodies } from './bodies'
import { Cameras, headingOf, type CameraMode } from './cameras'
import { Handle } from './handle'
import { Outline, extentOf } from './outline'
import { plainSky } from './plain'
import { PoseTrack } from './poses'
import { Quality } from './quality'
import { matrixOf } from './shapes'
import { Light, SKY, makeSky } from './surfaces'
import { watchPointer } from './pointer'

const found = import.meta.glob<{ default: Layer }>('../layers/*.ts', { eager: true })

const DETAIL = {
  weak: { triangles: 9_000, stride: 2, pixels: 24, ruts: { step: 2, pixels: 8, most: 32 } },
  strong: { triangles: 400_000, stride: 1, pixels: 5, ruts: { step: 1, pixels: 3, most: 400 } },
}
// ms: software rendering shares the processor with the simulator, and leaves it some: at least so much, and half as much as a frame took.
const WEAK_SPACING = 40
const WEAK_REST = 0.5
const STILL_AFTER = 400 // ms

export class WorldView implements View {
  readonly scene = new Scene()
  readonly canvas: HTMLCanvasElement
  readonly isWeak: boolean
  readonly hasGraphics: boolean
  private bodies: Bodies | null = null
  private readonly renderer: WebGLRenderer | null
  private readonly cameras: Cameras
  private assets: Assets
  private readonly light = new Light()
  private readonly skies = { plain: plainSky(), rich: makeSky() }
  private isPlain = true // drawn with the cheapest materials
  private readonly outline = new Outline()
  private readonly handle: Handle
  private readonly quality: Quality
  private still = 0 // timer
  private isFine = false // what is seen was drawn with every pixel
  private isOther = true // size, pixels or shadows are to be other ones from the next frame on
  private readonly list: Layer[]
  private readonly isOn = new Map<string, boolean>()
  private readonly chosen: Record<string, boolean> // layers as the user left them
  private track = new PoseTrack(0)
  private wantsShadows = false
  private handled: Object3D | null = null
  private isAsked = false // a frame is asked for
  private isDirty = true
  private isDrawing = false
  private askedAt = 0 // ms, when it was
  private hasPoses = false // of this epoch
  private isFramed = false
  private isFirst = true
  private lastFrame = 0 // ms, when it began
  private lastDone = 0 // ms, when it was done
  private fence: WebGLSync | null = null // of a frame that is being drawn
  private took = 0 // ms, the last one
  private radius = 0 // m, of the world, and when it was measured
  private measuredAt = -Infinity
  private size = new Vector2(1, 1)
  private readonly nowhere = new Object3D()

  constructor(private readonly app: App) {
    const graphics = findGraphics()
    this.hasGraphics = graphics !== null
    this.isWeak = graphics?.isWeak ?? true
    this.canvas = graphics?.canvas ?? document.createElement('canvas')
    this.canvas.tabIndex = 0
    this.canvas.setAttribute('aria-label', 'The world in three dimensions')
    this.canvas.dataset.testid = 'canvas'
    Object.assign(this.canvas.style, { display: 'block', width: '100%', height: '100%', touchAction: 'none', outline: 'none' })
    this.renderer = graphics ? new WebGLRenderer({ canvas: this.canvas, context: graphics.context }) : null
    this.quality = new Quality(this.isWeak)
    if (this.renderer) {
      this.renderer.toneMappingExposure = 1.25
      this.renderer.shadowMap.type = PCFShadowMap
      this.renderer.shadowMap.enabled = true
      this.renderer.debug.checkShaderErrors = false // asking for them makes the page wait for each shader
    }
    this.cameras = new Cameras(this.canvas, () => this.redraw())
    this.cameras.isRigid = this.isWeak
    this.assets = new Assets(this.isWeak)
    this.scene.fog = new Fog(SKY.horizon, 40, 160)
    this.scene.add(this.light.root)
    for (const sky of Object.values(this.skies)) {
      sky.frustumCulled = false
      sky.renderOrder = 5 // behind what is solid, below what shines through
      sky.raycast = () => undefined
      this.scene.add(sky)
    }
    this.setPlain(this.isWeak)
    this.handle = new Handle(
      this.scene,
      this.camera,
      this.canvas,
      () => this.redraw(),
      (isHeld) => (this.cameras.controls.enabled = !isHeld && this.cameras.mode !== 'onboard'),
    )
    this.list = Object.values(found)
      .map((module) => module.default)
      .sort((a, b) => a.order - b.order)
    this.chosen = recallLayers()
    this.canvas.addEventListener('webglcontextrestored', () => this.redraw())
    app.on('hello', () => this.assets.clear())
    app.on('world', (world) => this.enter(world))
    app.on('select', (selection) => this.select(selection))
    app.on('beds', (beds) => this.bodies?.setBeds(beds, app.ruts.values()))
    app.on('ruts', (tiles) => this.bodies?.takeRuts(tiles))
    app.on('pairs', () => this.bodies?.paintRegions(app.regions))
  }

  // To be called once the app knows its view: layers may use both.
  attach(place: HTMLElement): void {
    place.prepend(this.canvas)
    new ResizeObserver(() => this.resize()).observe(place)
    for (const layer of this.list) {
      layer.create(this.app)
      this.isOn.set(layer.id, this.chosen[layer.id] ?? (layer.on && !(layer.isCostly && this.isWeak)))
    }
    for (const layer of this.list) layer.show(this.app, this.isOn.get(layer.id) === true)
    watchPointer(this.app, this)
    this.resize()
  }

  get camera(): PerspectiveCamera {
    return this.cameras.camera
  }

  get cameraMode(): CameraMode {
    return this.cameras.mode
  }

  get fps(): number {
    return this.quality.fps
  }

  get isHandleHeld(): boolean {
    return this.handle.isHeld
  }

  body(index: number): Object3D {
    return this.bodies?.body(index) ?? this.nowhere
  }

  box(index: number): Box3 {
    return this.bodies?.boxOf(index) ?? new Box3()
  }

  setCamera(mode: CameraMode, body?: number): void {
    const first = this.firstRobot()
    this.cameras.set(mode, body ?? (this.cameras.body >= 0 ? this.cameras.body : first))
    this.redraw()
  }

  lookAt(point: Vec3, distance?: number): void {
    if (this.cameras.mode === 'onboard') this.cameras.set('orbit', -1)
    this.cameras.lookAt(new Vector3(...point), distance)
    this.redraw()
  }

  redraw(): void {
    this.isDirty = true
    if (!this.isDrawing) this.ask() // a frame asks for the next one by itself
  }

  layers(): { id: string; title: string; on: boolean }[] {
    return this.list.map(({ id, title }) => ({ id, title, on: this.isOn.get(id) === true }))
  }

  setLayer(id: string, on: boolean): void {
    const layer = this.list.find((one) => one.id === id)
    if (!layer) return
    this.chosen[id] = on
    rememberLayers(this.chosen)
    if (this.isOn.get(id) === on) return
    this.isOn.set(id, on)
    layer.show(this.app, on)
    this.redraw()
  }

  setShadows(on: boolean): void {
    this.wantsShadows = on
    // The cheapest materials know no shadows: who asks for some gets the full ones.
    if (this.isWeak && this.isPlain === on) {
      this.setPlain(!on)
      const hadPoses = this.hasPoses
      if (this.app.world) this.enter(this.app.world)
      this.bodies?.setBeds(this.app.beds, this.app.ruts.values())
      if (hadPoses) this.take(this.app.time)
      this.select(this.app.selection)
    }
    this.isOther = true
    this.redraw()
  }

  pick(x: number, y: number): { point: Vec3; shape: number; link: number } | null {
    if (!this.bodies) return null
    const at = new Vector2((x / this.canvas.clientWidth) * 2 - 1, 1 - (y / this.canvas.clientHeight) * 2)
    const ray = new Raycaster()
    this.scene.updateMatrixWorld()
    this.camera.updateMatrixWorld()
    ray.setFromCamera(at, this.camera)
    const hit = this.bodies.pick(ray)
    return hit && { point: hit.point.toArray(), shape: hit.shape, link: hit.link }
  }

  // Looks at all of what is selected.
  focus(selection: Selection): void {
    const bodies = this.bodies
    if (!bodies) return
    const { links, shapes } = extentOf(bodies.world, selection)
    const box = new Box3()
    for (const link of links) box.union(bodies.boxOf(link))
    for (const index of shapes) box.union(this.shapeBox(index))
    if (box.isEmpty()) return
    const radius = Math.max(box.getSize(new Vector3()).length() / 2, 0.15)
    this.lookAt(box.getCenter(new Vector3()).toArray(), Math.min(Math.max(radius * 3.2, 0.6), 60))
  }

  showHandle(link: number | null, moved?: (p: Vec3, q: Quat) => void, shape?: number): void {
    this.handle.hide()
    this.handled = null
    this.redraw()
    const bodies = this.bodies
    if (link === null || !moved || !bodies) return
    if (link >= 0) {
      const object = bodies.objects[link]
      if (!object) return
      this.handled = object
      this.handle.show(object, bodies.boxes[link] as Box3, moved)
    } else if (shape !== undefined && bodies.world.shapes[shape]) {
      const { p, q } = bodies.world.shapes[shape] as ShapeInfo
      const object = new Object3D()
      object.applyMatrix4(matrixOf(p, q))
      this.handle.show(object, bodies.shapeBoxes.get(shape) ?? new Box3(), moved)
    }
  }

  private setPlain(isPlain: boolean): void {
    this.isPlain = isPlain
    this.assets.clear()
    this.assets = new Assets(isPlain)
    this.skies.plain.visible = isPlain
    this.skies.rich.visible = !isPlain
    if (this.renderer) this.renderer.toneMapping = isPlain ? NoToneMapping : AgXToneMapping
  }

  private shapeBox(index: number): Box3 {
    const shape = this.bodies?.world.shapes[index]
    const box = this.bodies?.shapeBoxes.get(index)
    if (!shape || !box || !this.bodies) return new Box3()
    const moved = box.clone().applyMatrix4(matrixOf(shape.p, shape.q))
    const object = this.bodies.body(shape.link)
    object.updateMatrixWorld()
    return moved.applyMatrix4(object.matrixWorld)
  }

  private firstRobot(): number {
    const world = this.bodies?.world
    if (!world) return -1
    const group = world.groups.findIndex((one) => one.robot)
    const floating = group >= 0 ? group : world.groups.findIndex((one) => one.floating)
    return world.links.findIndex((link) => link.group === floating)
  }

  private enter(world: World): void {
    const followed = this.bodies?.world.links[this.cameras.body]?.name
    const isSame = this.bodies !== null && this.bodies.world.file === world.file && this.bodies.world.name === world.name
    const last = this.bodies
    this.handle.hide()
    this.handled = null
    this.outline.clear()
    this.bodies = new Bodies(world, this.assets, this.isPlain, this.isWeak ? DETAIL.weak : DETAIL.strong, () => this.redraw())
    this.bodies.paintRegions(this.app.regions)
    // What was there before stays where it was seen last until its first pose comes.
    last?.dispose()
    this.scene.add(this.bodies.root)
    this.track = new PoseTrack(world.links.length)
    this.hasPoses = false
    if (!isSame) this.isFramed = false
    else if (this.cameras.mode !== 'orbit') {
      const body = world.links.findIndex((link) => link.name === followed)
      if (body < 0) this.cameras.set('orbit', -1)
      else this.cameras.body = body
    }
    for (const layer of this.list) layer.world?.(this.app, world)
    if (world.links.length === 0) this.take(this.app.time)
    this.ask()
  }

  // A picture has come.
  take(time: number): void {
    if (!this.bodies) return
    this.track.take(this.app.poses, time, performance.now())
    this.hasPoses = true
    this.ask()
  }

  private select(selection: Selection | null): void {
    if (this.bodies) this.outline.show(this.bodies, selection)
    this.redraw()
  }

  // At first: the first robot, followed; without one the whole world.
  private frameWorld(bodies: Bodies): void {
    this.isFramed = true
    const robot = bodies.world.groups.findIndex((one) => one.robot)
    const root = bodies.world.links.findIndex((link) => link.group === robot)
    if (robot >= 0 && root >= 0) {
      const box = bodies.boxOfGroup(robot)
      this.cameras.set('follow', root)
      this.cameras.frame(box, headingOf((bodies.objects[root] as Object3D).quaternion), true)
      return
    }
    this.cameras.set('orbit', -1)
    // Wide ground would make what stands on it too small to see.
    const moving = together(bodies.objects.map((_, i) => bodies.boxOf(i)))
    this.cameras.frame(moving.isEmpty() ? bodies.boxOfAll() : moving, null, true)
  }

  private resize(): void {
    const place = this.canvas.parentElement
    if (!place) return
    const width = Math.max(place.clientWidth, 1)
    const height = Math.max(place.clientHeight, 1)
    this.size.set(width, height)
    this.cameras.resize(width, height)
    this.isOther = true
    this.isDirty = true
    this.draw(performance.now())
    this.ask()
  }

  // A new size empties the canvas: only before it is drawn into.
  private applyQuality(): void {
    this.isOther = false
    if (!this.renderer) return
    this.isFine = false
    const { pixels, shadow } = this.quality.level
    this.renderer.setPixelRatio(Math.min(devicePixelRatio, pixels))
    this.renderer.setSize(this.size.x, this.size.y, false)
    // Shadows that somebody asked for are drawn even where they are slow.
    const side = shadow > 0 ? shadow : this.chosen.shadows === true ? 512 : 0
    const { sun } = this.light
    const isOn = this.wantsShadows && side > 0
    sun.castShadow = isOn
    if (isOn && sun.shadow.mapSize.x !== side) {
      sun.shadow.mapSize.set(side, side)
      sun.shadow.map?.dispose()
      sun.shadow.map = null
    }
  }

  private ask(): void {
    if (this.isAsked) return
    this.isAsked = true
    this.askedAt = performance.now()
    requestAnimationFrame((now) => this.turn(now))
  }

  private turn(now: number): void {
    this.isAsked = false
    if (this.isWeak && !this.isRested(now)) {
      this.isAsked = true
      requestAnimationFrame((later) => this.turn(later))
      return
    }
    this.draw(now)
  }

  // Has the last frame been drawn, and left time for others? Frames that queue up would make the whole page slow.
  private isRested(now: number): boolean {
    const gl = this.renderer?.getContext() as WebGL2RenderingContext | undefined
    if (gl && this.fence && gl.getSyncParameter(this.fence, gl.SYNC_STATUS) === gl.SIGNALED) this.took = now - this.lastFrame
    else if (gl && this.fence && now - this.lastFrame < 2000) return false
    if (gl) gl.deleteSync(this.fence)
    this.fence = null
    return now - this.lastFrame >= Math.max(WEAK_SPACING, (1 + WEAK_REST) * this.took)
  }

  private draw(now: number): void {
    this.isDrawing = true
    const isMoving = this.drawNow(now)
    this.isDrawing = false
    if (isMoving) this.ask()
    window.clearTimeout(this.still)
    this.still = window.setTimeout(() => this.refine(), STILL_AFTER)
  }

  // When nothing has moved for a while there is time for every pixel, once.
  private refine(): void {
    const pixels = Math.min(devicePixelRatio, 2)
    if (!this.renderer || this.isFirst || this.isFine || this.renderer.getPixelRatio() >= pixels) return
    this.isFine = true
    this.renderer.setPixelRatio(pixels)
    this.renderer.setSize(this.size.x, this.size.y, false)
    this.renderer.render(this.scene, this.camera)
  }

  // True when something goes on moving by itself.
  private drawNow(now: number): boolean {
    const bodies = this.bodies
    const gap = now - this.lastFrame
    const dt = Math.min(Math.max(gap / 1000, 0), 0.1)
    // Bodies whose places are not known yet are not shown: what was drawn last stays.
    if (!bodies || !this.hasPoses) return false
    const poses = this.track
    let isMoving = poses.sample(performance.now(), !this.isWeak, (body) => {
      bodies.move(body, poses.shown, body * 7)
      this.isDirty = true
    })
    if (!this.isFramed) this.frameWorld(bodies)
    if (this.cameras.update(bodies, dt)) isMoving = true
    if (isMoving) this.isDirty = true
    if (!this.isDirty) return false
    this.isDirty = false
    const center = this.cameras.center()
    const distance = this.cameras.distance()
    if (now - this.measuredAt > 1000) {
      this.measuredAt = now
      this.radius = bodies.radius()
    }
    const reach = Math.max(this.radius, distance)
    const fog = this.scene.fog as Fog
    fog.near = Math.max(30, reach * 1.2)
    fog.far = Math.max(150, reach * 4)
    this.light.aim(center, distance)
    this.cameras.see(this.radius)
    this.camera.updateMatrixWorld()
    bodies.detailFor(this.camera, this.size.y * Math.min(this.renderer?.getPixelRatio() ?? 1, 1))
    for (const layer of this.list) if (this.isOn.get(layer.id)) layer.frame?.(this.app, dt)
    if (this.handled) this.handle.follow(this.handled)
    if (this.isFine || this.isOther) this.applyQuality()
    this.renderer?.render(this.scene, this.camera)
    if (this.renderer && this.isWeak) this.setFence(this.renderer.getContext() as WebGL2RenderingContext)
    // Frames that did not have to wait for something to draw tell how quick drawing is.
    const hadToWait = this.askedAt - this.lastDone > Math.max(60, gap / 2)
    if (this.quality.frame(gap, hadToWait)) this.isOther = true
    this.lastFrame = now
    this.lastDone = performance.now()
    if (this.isFirst && this.renderer) this.first()
    return isMoving
  }

  private setFence(gl: WebGL2RenderingContext): void {
    gl.deleteSync(this.fence)
    this.fence = gl.fenceSync(gl.SYNC_GPU_COMMANDS_COMPLETE, 0)
    gl.flush()
  }

  private first(): void {
    this.isFirst = false
    performance.mark('first-frame')
    document.documentElement.dataset.ready = '1'
  }
}

// Around most of the boxes: what has fallen or rolled far away from the others is left out.
function together(boxes: Box3[]): Box3 {
  const seen = boxes.filter((box) => !box.isEmpty())
  const middle = (values: number[]): number => values.sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0
  const centers = seen.map((box) => box.getCenter(new Vector3()))
  const center = new Vector3(middle(centers.map((c) => c.x)), middle(centers.map((c) => c.y)), middle(centers.map((c) => c.z)))
  const near = Math.max(3, 4 * middle(centers.map((c) => c.distanceTo(center))))
  const all = new Box3()
  seen.forEach((box, i) => {
    if ((centers[i] as Vector3).distanceTo(center) <= near) all.union(box)
  })
  return all
}

interface Graphics {
  canvas: HTMLCanvasElement
  context: WebGL2RenderingContext
  isWeak: boolean // drawn in software
}

// Null when there is no WebGL 2. Software gets a canvas without smoothed edges; whoever has more gets another one with them.
// `?quality=high` or `low` in the page's address decides otherwise.
function findGraphics(): Graphics | null {
  const make = (antialias: boolean): { canvas: HTMLCanvasElement; context: WebGL2RenderingContext | null } => {
    const canvas = document.createElement('canvas')
    return { canvas, context: canvas.getContext('webgl2', { alpha: false, antialias, stencil: false, powerPreference: 'high-performance' }) }
  }
  const { canvas, context } = make(false)
  if (!context) return null
  const names = context.getExtension('WEBGL_debug_renderer_info')
  const name = String(context.getParameter(names ? names.UNMASKED_RENDERER_WEBGL : context.RENDERER))
  const wish = new URLSearchParams(location.search).get('quality')
  const isWeak = wish === 'low' || (wish !== 'high' && /swiftshader|llvmpipe|software|basic render/i.test(name))
  if (isWeak) return { canvas, context, isWeak }
  context.getExtension('WEBGL_lose_context')?.loseContext()
  const better = make(true)
  return better.context && { canvas: better.canvas, context: better.context, isWeak }
}

const KEY = 'understudy.layers'

function recallLayers(): Record<string, boolean> {
  try {
    return JSON.parse(localStorage.getItem(KEY) ?? '{}') as Record<string, boolean>
  } catch {
    return {}
  }
}

function rememberLayers(chosen: Record<string, boolean>): void {
  try {
    localStorage.setItem(KEY, JSON.stringify(chosen))
  } catch {
    // A browser that keeps nothing is no reason to stop.
  }
}
