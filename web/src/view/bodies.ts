// All that stands and moves in the world, as three.js objects.
//
// Each body has an Object3D that follows it. Solids of one geometry are drawn together, as instances; many that are like no other, such as rocks, in
// one batch; meshes and height fields hang on their body. A link without a visual shape shows those it collides with.
import {
  BatchedMesh,
  Box3,
  Color,
  Group,
  InstancedMesh,
  LineBasicMaterial,
  LineSegments,
  Matrix4,
  Mesh,
  MeshLambertMaterial,
  MeshStandardMaterial,
  Object3D,
  Sphere,
  Vector3,
  WireframeGeometry,
  type Intersection,
  type Material,
  type PerspectiveCamera,
  type Raycaster,
} from 'three'
import type { BedInfo, RegionRow, RutTile, ShapeInfo, World } from '../app'
import type { Assets } from './assets'
import type { Ground, GroundLook } from './ground'
import { Ruts, type RutLook } from './ruts'
import { HALF_SPACE_RADIUS, matrixOf, solidOf } from './shapes'
import { baker, plainSurface } from './plain'
import { RegionMap } from './regions'
import { groundDepth, groundSurface, makeCut, surface, type SurfaceOptions } from './surfaces'

interface Leaf {
  body: number
  shape: number
  local: Matrix4 // X_BG with the scale
  color: Color
}
type AddShape = (shape: ShapeInfo, index: number, X_BG: Matrix4, color: Color, opacity: number) => void

// How finely ground is drawn.
export interface Detail {
  triangles: number // of a height field
  stride: number // every how many lines of a tile
  pixels: number // a cell that looks larger is split
  ruts: Pick<RutLook, 'step' | 'pixels' | 'most'>
}

interface Batch {
  mesh: InstancedMesh | BatchedMesh
  leaves: Leaf[]
}
interface Solids {
  geometry: Mesh['geometry']
  opacity: number
  leaves: Leaf[]
}

// For what the scene gives no colour: quiet ones, by group.
const PALETTE = [0x9aa7b4, 0x7f9bb3, 0xb39b7f, 0x8fae94, 0xa58fae, 0xb08f8f]

const MANY = 8 // solids that are like no other, from which on they are drawn in one batch
const CROWD = 400 // shapes, from which on round ones are drawn with fewer triangles

const GLOW = new Color(0x8fd0ff)
const PAPER = new Color(1, 1, 1) // what a photograph lies on

export class Bodies {
  readonly root = new Group()
  readonly objects: Object3D[] = []
  readonly ground: Object3D[] = [] // half-spaces
  readonly fields: Ground[] = [] // height fields
  readonly ruts: (Ruts | undefined)[] = [] // by bed
  readonly regions: RegionMap[] = [] // of each ground that has some
  readonly boxes: Box3[] = [] // of each body's shapes in its own frame; empty for a body without
  readonly shapeBoxes = new Map<number, Box3>() // of each shape that is drawn, in its own frame
  readonly still = new Box3() // of what stands still, half-spaces apart
  private readonly origin = new Object3D() // the world
  private readonly batches: Batch[] = []
  private readonly leavesOf: { batch: Batch; at: number }[][] = []
  private readonly lit = new Map<Mesh, Material>()
  private readonly made: { dispose(): void }[] = []
  private isGone = false

  constructor(
    readonly world: World,
    private readonly assets: Assets,
    private readonly isPlain: boolean, // drawn with the cheapest materials
    private readonly detail: Detail,
    private readonly changed: () => void,
  ) {
    this.root.name = 'bodies'
    this.root.add(this.origin)
    world.links.forEach((link) => {
      const object = new Object3D()
      object.name = link.name
      this.objects.push(object)
      this.boxes.push(new Box3())
      this.leavesOf.push([])
      this.root.add(object)
    })
    this.build()
  }

  body(index: number): Object3D {
    return this.objects[index] ?? this.origin
  }

  // Which shapes are drawn as solids.
  private shown(): Set<number> {
    const hasVisual = new Set(this.world.shapes.filter((shape) => shape.visual).map((shape) => shape.link))
    const shown = new Set<number>()
    this.world.shapes.forEach((shape, i) => {
      if (shape.visual || (shape.collision && !hasVisual.has(shape.link))) shown.add(i)
    })
    return shown
  }

  private build(): void {
    const isCoarse = this.isPlain || this.world.shapes.length > CROWD
    const solids = new Map<string, Solids>()
    const add: AddShape = (shape, index, X_BG, color, opacity) => {
      if (shape.kind === 'union' || shape.kind === 'intersection') {
        for (const part of shape.parts ?? []) {
          const X = X_BG.clone().multiply(matrixOf(part.p, part.q))
          if (shape.kind === 'union') add(part, index, X, part.rgba ? colorOf(part.rgba) : color, opacity)
          else this.addWire(part, index, X, color, add)
        }
        return
      }
      if (shape.kind === 'mesh') {
        this.addMesh(index, X_BG)
        return
      }
      if (shape.kind === 'height-field') {
        this.addField(index, X_BG, color, opacity)
        return
      }
      const solid = solidOf(shape, isCoarse)
      if (!solid) return
      if (shape.kind === 'half-space') {
        const regions = RegionMap.of(this.world, index, this.isPlain, this.changed)
        if (regions) {
          this.regions.push(regions)
          this.made.push(regions)
        }
        const mesh = new Mesh(solid.geometry, this.groundSurface({ color: color.getHex(), opacity, regions: regions?.uniforms }))
        mesh.receiveShadow = true
        this.place(mesh, index, X_BG)
        this.ground.push(mesh)
        return
      }
      solid.geometry.computeBoundingBox()
      const local = X_BG.clone().scale(solid.scale)
      const link = (this.world.shapes[index] as ShapeInfo).link // a part belongs to the link of the whole
      this.grow(link, index, solid.geometry.boundingBox as Box3, local)
      const key = `${solid.key}@${opacity}`
      let entry = solids.get(key)
      if (!entry) solids.set(key, (entry = { geometry: solid.geometry, opacity, leaves: [] }))
      entry.leaves.push({ body: link, shape: index, local, color })
    }
    const shown = this.shown()
    this.world.shapes.forEach((shape, i) => {
      if (!shown.has(i)) return
      const group = this.world.links[shape.link]?.group ?? -1
      const color = shape.rgba ? colorOf(shape.rgba) : new Color(PALETTE[(group + 1) % PALETTE.length])
      add(shape, i, matrixOf(shape.p, shape.q), color, shape.rgba?.[3] ?? 1)
    })
    // By opacity: those that are like no other.
    const single = new Map<number, Solids[]>()
    for (const entry of solids.values()) {
      if (entry.leaves.length === 1) single.set(entry.opacity, [...(single.get(entry.opacity) ?? []), entry])
      else this.addBatch(new InstancedMesh(entry.geometry, undefined, entry.leaves.length), entry.opacity, entry.leaves)
    }
    for (const [opacity, entries] of single) {
      const leaves = entries.flatMap((entry) => entry.leaves)
      if (entries.length >= MANY) this.addBatch(together(entries), opacity, leaves)
      else for (const entry of entries) this.addBatch(new InstancedMesh(entry.geometry, undefined, 1), opacity, entry.leaves)
    }
  }

  private addBatch(mesh: InstancedMesh | BatchedMesh, opacity: number, leaves: Leaf[]): void {
    const material = this.isPlain ? plainSurface({ opacity }) : surface({ opacity })
    mesh.material = material
    this.made.push(mesh, material)
    // Its instances move about: neither culling nor picking may go by where they were at first.
    mesh.frustumCulled = false
    mesh.boundingSphere = new Sphere(new Vector3(), Infinity)
    mesh.castShadow = opacity >= 0.5
    mesh.receiveShadow = true
    const batch = { mesh, leaves }
    leaves.forEach((leaf, at) => {
      mesh.setColorAt(at, leaf.color)
      mesh.setMatrixAt(at, leaf.local)
      if (leaf.body >= 0) this.leavesOf[leaf.body]?.push({ batch, at })
    })
    this.batches.push(batch)
    this.root.add(mesh)
  }

  private groundSurface(options: SurfaceOptions, isBaked = false): Material {
    return this.isPlain ? plainSurface(options, true, isBaked) : groundSurface(options)
  }

  private place(object: Object3D, index: number, X_BG: Matrix4): void {
    object.applyMatrix4(X_BG)
    object.traverse((node) => (node.userData.shape = index))
    this.body((this.world.shapes[index] as ShapeInfo).link).add(object)
  }

  private addMesh(index: number, X_BG: Matrix4): void {
    const shape = this.world.shapes[index] as ShapeInfo
    if (shape.box) this.grow(shape.link, index, new Box3(new Vector3(...shape.box.min), new Vector3(...shape.box.max)), X_BG)
    this.assets.mesh(this.world, index, (group, box) => {
      if (this.isGone) return
      if (!shape.box) this.grow(shape.link, index, box, X_BG)
      group.traverse((node) => {
        node.castShadow = true
        node.receiveShadow = true
      })
      // The file's own frames stay as they are: this one stands above them.
      const frame = new Group()
      frame.add(group)
      this.place(frame, index, X_BG)
      this.changed()
    })
  }

  private addField(index: number, X_BG: Matrix4, color: Color, opacity: number): void {
    const shape = this.world.shapes[index] as ShapeInfo
    const { nx = 1, ny = 1, size, ground: about } = shape
    const half = new Vector3(((nx - 1) * size[0]) / 2, ((ny - 1) * size[1]) / 2, 0)
    this.grow(shape.link, index, new Box3(half.clone().negate(), half), X_BG)
    const ground = this.assets.ground(this.world, index, () => this.lookOf(index, X_BG, color, opacity), this.changed)
    if (!ground || !about) return
    if (ground.look.regions) this.regions.push(ground.look.regions)
    ground.object.matrix.identity().decompose(ground.object.position, ground.object.quaternion, ground.object.scale)
    this.place(ground.object, index, X_BG)
    this.fields.push(ground)
  }

  // Ground that stands still is lit once and for all where drawing is costly.
  private lookOf(index: number, X_BG: Matrix4, color: Color, opacity: number): GroundLook {
    const shape = this.world.shapes[index] as ShapeInfo
    const isPhoto = shape.ground?.photo === true
    const isBaked = this.isPlain && shape.link < 0
    const shade = { color: isPhoto ? PAPER : color, low: shape.ground?.low ?? 0, high: shape.ground?.high ?? 0, isPlain: isPhoto }
    const cut = makeCut()
    const regions = RegionMap.of(this.world, index, this.isPlain, this.changed)
    const options = { vertexColors: true, opacity, regions: regions?.uniforms }
    const shared = isPhoto ? null : { whole: this.groundSurface(options, isBaked), cut: this.groundSurface({ ...options, cut }, isBaked) }
    const depth = groundDepth(cut)
    return {
      shade,
      cut,
      regions,
      budget: this.detail.triangles,
      stride: this.detail.stride,
      pixels: this.detail.pixels,
      bake: isBaked ? baker(X_BG) : undefined,
      material: (photo, isCut) => shared?.[isCut ? 'cut' : 'whole'] ?? this.groundSurface({ ...options, photo, ...(isCut && { cut }) }, isBaked),
      finish: (mesh, isCut) => {
        mesh.receiveShadow = true
        mesh.castShadow = !this.isPlain
        if (isCut) mesh.customDepthMaterial = depth
        else delete mesh.customDepthMaterial
      },
    }
  }

  // Beds of soil, and what was touched in them so far.
  setBeds(beds: BedInfo[], touched: Iterable<RutTile>): void {
    for (const old of this.ruts) old?.dispose()
    this.ruts.length = 0
    for (const bed of beds) {
      const shape = this.world.shapes[bed.shape]
      const ground = this.fields.find((field) => field.object.userData.shape === bed.shape)
      if (!shape || !ground) continue
      const X_BG = matrixOf(shape.p, shape.q)
      const isBaked = this.isPlain
      const X_GB = X_BG.clone().invert().multiply(matrixOf(bed.p, bed.q))
      const middle = new Vector3().setFromMatrixPosition(X_GB)
      const options = { vertexColors: true, regions: ground.look.regions?.moved(middle.x, middle.y) }
      const shared = this.groundSurface(options, isBaked)
      const look: RutLook = {
        ...this.detail.ruts,
        shade: ground.look.shade,
        hasPhoto: shape.ground?.photo === true,
        bake: isBaked ? baker(X_BG) : undefined,
        material: (photo) => (photo ? this.groundSurface({ ...options, photo }, isBaked) : shared),
        finish: (mesh) => {
          mesh.receiveShadow = true
          mesh.castShadow = !this.isPlain
        },
      }
      const ruts = new Ruts(bed, bed.shape, ground.look.cut, X_GB, look, this.changed)
      this.made.push(shared)
      this.ruts[beds.indexOf(bed)] = ruts
      this.root.add(ruts.object)
    }
    this.takeRuts(touched)
  }

  // Regions in the colours of what they are made of now.
  paintRegions(rows: RegionRow[]): void {
    for (const map of this.regions) map.paint(this.world, rows)
  }

  takeRuts(tiles: Iterable<RutTile>): void {
    for (const tile of tiles) this.ruts[tile.bed]?.take(tile)
    this.changed()
  }

  // Before each frame: ground as fine as it is seen.
  detailFor(camera: PerspectiveCamera, height: number): void {
    for (const ruts of this.ruts) ruts?.update(camera, height)
    for (const field of this.fields) field.update(camera, height)
  }

  // Moves an eye that looks at something so far away out of the ground, to so much above it; true when it had to be.
  raise(eye: Vector3, above: number, distance: number): boolean {
    let isRaised = false
    for (const field of this.fields) if (field.raise(eye, above, distance)) isRaised = true
    return isRaised
  }

  // One of the parts that an intersection is cut from: its edges, and a hint of its surface.
  private addWire(part: ShapeInfo, index: number, X_BG: Matrix4, color: Color, add: AddShape): void {
    const solid = solidOf(part)
    if (solid) {
      const geometry = new WireframeGeometry(solid.geometry)
      const material = new LineBasicMaterial({ color, transparent: true, opacity: 0.25 })
      const lines = new LineSegments(geometry, material)
      lines.raycast = () => undefined
      this.made.push(geometry, material)
      this.place(lines, index, X_BG.clone().scale(solid.scale))
    }
    add(part, index, X_BG, color, 0.18)
  }

  private grow(link: number, index: number, box: Box3, X: Matrix4): void {
    const moved = box.clone().applyMatrix4(X)
    const { p, q } = this.world.shapes[index] as ShapeInfo
    const own = box.clone().applyMatrix4(matrixOf(p, q).invert().multiply(X))
    this.shapeBoxes.set(index, own.union(this.shapeBoxes.get(index) ?? own))
    if (link < 0) this.still.union(moved)
    else this.boxes[link]?.union(moved)
  }

  // Puts a body where `pose` (7 numbers at `at`) says.
  move(body: number, pose: Float32Array, at: number): void {
    const object = this.objects[body] as Object3D
    object.position.set(pose[at] as number, pose[at + 1] as number, pose[at + 2] as number)
    object.quaternion.set(pose[at + 4] as number, pose[at + 5] as number, pose[at + 6] as number, pose[at + 3] as number)
    const leaves = this.leavesOf[body] as { batch: Batch; at: number }[]
    if (leaves.length === 0) return
    matrix.compose(object.position, object.quaternion, ONE)
    for (const leaf of leaves) {
      product.multiplyMatrices(matrix, (leaf.batch.leaves[leaf.at] as Leaf).local)
      const { mesh } = leaf.batch
      mesh.setMatrixAt(leaf.at, product)
      if (mesh instanceof InstancedMesh) mesh.instanceMatrix.needsUpdate = true
    }
  }

  // Box in the world of a body as it stands now; of -1: of what stands still.
  boxOf(body: number): Box3 {
    const box = body < 0 ? this.still : this.boxes[body]
    if (!box || box.isEmpty()) return new Box3()
    if (body < 0) return box.clone()
    const object = this.objects[body] as Object3D
    return box.clone().applyMatrix4(matrix.compose(object.position, object.quaternion, ONE))
  }

  boxOfGroup(group: number): Box3 {
    const box = new Box3()
    this.world.links.forEach((link, i) => {
      if (link.group === group) box.union(this.boxOf(i))
    })
    return box
  }

  boxOfAll(): Box3 {
    const box = this.still.clone()
    this.objects.forEach((_, i) => box.union(this.boxOf(i)))
    return box
  }

  // Shapes for which `isLit` holds are shown brighter.
  highlight(isLit: (shape: number) => boolean): void {
    const color = new Color()
    const faint = GLOW.clone().multiplyScalar(0.06)
    for (const batch of this.batches) {
      batch.leaves.forEach((leaf, at) => {
        color.copy(leaf.color)
        if (isLit(leaf.shape)) color.multiplyScalar(1.3).add(faint)
        batch.mesh.setColorAt(at, color)
      })
      if (batch.mesh instanceof InstancedMesh && batch.mesh.instanceColor) batch.mesh.instanceColor.needsUpdate = true
    }
    for (const [mesh, material] of this.lit) {
      ;(mesh.material as Material).dispose()
      mesh.material = material
    }
    this.lit.clear()
    this.root.traverse((node) => {
      if (!(node instanceof Mesh) || node instanceof InstancedMesh || node.userData.shape === undefined) return
      if (!isLit(node.userData.shape as number) || this.ground.includes(node) || node.parent?.name === 'ground') return
      const own = node.material as Material
      if (!(own instanceof MeshStandardMaterial || own instanceof MeshLambertMaterial)) return
      const glowing = own.clone()
      glowing.emissive.copy(GLOW)
      glowing.emissiveIntensity = 0.22
      this.lit.set(node, own)
      node.material = glowing
    })
  }

  pick(ray: Raycaster): { point: Vector3; shape: number; link: number } | null {
    const hits: Intersection[] = []
    ray.intersectObject(this.root, true, hits)
    for (const hit of hits) {
      const batch = this.batches.find((one) => one.mesh === hit.object)
      const shape = batch ? batch.leaves[hit.instanceId ?? hit.batchId ?? -1]?.shape : (hit.object.userData.shape as number | undefined)
      if (shape === undefined || !hit.object.visible) continue
      return { point: hit.point, shape, link: this.world.shapes[shape]?.link ?? -1 }
    }
    return null
  }

  dispose(): void {
    this.isGone = true
    this.root.removeFromParent()
    for (const [mesh, material] of this.lit) {
      ;(mesh.material as Material).dispose()
      mesh.material = material
    }
    for (const ruts of this.ruts) ruts?.dispose()
    for (const thing of this.made) thing.dispose()
  }

  // How far from the middle things are, for the camera's range and the haze.
  radius(): number {
    const box = this.boxOfAll()
    if (box.isEmpty()) return this.ground.length > 0 ? HALF_SPACE_RADIUS / 8 : 2
    return box.getBoundingSphere(new Sphere()).radius
  }
}

// Different geometries, one of each, to be drawn at once.
function together(entries: Solids[]): BatchedMesh {
  const geometries = entries.map(({ geometry }) => {
    const own = geometry.index ? geometry.toNonIndexed() : geometry.clone()
    return own.deleteAttribute('uv')
  })
  const corners = geometries.reduce((n, geometry) => n + geometry.getAttribute('position').count, 0)
  const mesh = new BatchedMesh(entries.length, corners, 0)
  mesh.perObjectFrustumCulled = false
  mesh.sortObjects = false
  for (const geometry of geometries) mesh.addInstance(mesh.addGeometry(geometry))
  return mesh
}

const ONE = new Vector3(1, 1, 1)
const matrix = new Matrix4()
const product = new Matrix4()

function colorOf(rgba: number[]): Color {
  return new Color().setRGB(rgba[0] ?? 1, rgba[1] ?? 1, rgba[2] ?? 1, 'srgb')
}
