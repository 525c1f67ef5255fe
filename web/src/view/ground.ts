// Ground as a tree of tiles: fine where the eye is near, coarse far away, and never more of it than there is memory and time for.
//
// A tile has 32 cells each way at every level; the four of the next finer level cover the same square with half the cell. Which ones are wanted is
// worked out from the eye: the tile whose cells look largest is replaced by its four, until none looks too large or the triangles are used up. A tile
// that has not come yet is stood in for by what is there: the coarser one, or the finer ones.
import { Box3, Frustum, Group, Matrix4, Mesh, Vector3 } from 'three'
import type { Material, PerspectiveCamera, Texture } from 'three'
import type { ShapeInfo } from '../app'
import { getBytes, patchGeometry, patchIndex, photoTexture, type Bake, type Patch, type Shade } from './field'
import type { RegionMap } from './regions'
import { cutShare, type Cut } from './surfaces'

const CELLS = 32 // as the simulator sends them: cells of a tile, samples around it, samples in all, pixels of its photograph
const BORDER = 3
const SIDE = CELLS + 1 + 2 * BORDER
const PIXELS = 128
const ASIDE = 0.2 // how much a tile counts that is out of sight: turning the head finds something
const AT_ONCE = 6 // requests under way
const PATIENCE = 2000 // ms until what was refused is asked for again

export interface GroundLook {
  shade: Shade
  cut: Cut // where something finer is drawn
  regions: RegionMap | null
  budget: number // triangles
  stride: number // every how many lines of a tile are drawn; near by all of them when there are triangles left
  pixels: number // a cell that looks larger is split
  bake?: Bake | undefined
  material: (photo: Texture | null, isCut: boolean) => Material
  finish?: (mesh: Mesh, isCut: boolean) => void // after a material was given to it
}

interface Node {
  level: number
  u: number
  v: number
  box: Box3
  children: Node[] | null // those that there are; null: not looked at yet
  mesh: Mesh | null
  isAsked: boolean
  askAfter: number // ms
  isSplit: boolean // is wanted in finer tiles
  size: number // px that a cell of it seems to have
  isSeen: boolean
  stride: number
  used: number // when it was last wanted or shown
  cut: number // version of the mask for which it was dressed
}

export class Ground {
  readonly object = new Group()
  tiles = '' // where they are; another epoch has another place
  private readonly root: Node
  private readonly kept = new Set<Node>() // with a mesh
  private readonly most: number // of them
  private shown = new Set<Node>()
  private wanted: Node[] = []
  private underWay = 0
  private turn = 0
  private isGone = false
  private readonly frustum = new Frustum()
  private readonly matrix = new Matrix4()
  private readonly eye = new Vector3()

  constructor(
    private readonly shape: ShapeInfo,
    readonly look: GroundLook,
    private readonly changed: () => void,
  ) {
    this.object.name = 'ground'
    this.root = this.node((shape.ground?.levels ?? 1) - 1, 0, 0) as Node
    this.most = 4 * Math.ceil(look.budget / trianglesOf(look.stride)) + 32
  }

  // How many tiles are shown, kept, and still to come.
  get count(): { shown: number; kept: number; missing: number; finest: number } {
    const finest = Math.min(...[...this.shown].map((node) => node.level))
    return { shown: this.shown.size, kept: this.kept.size, missing: this.underWay + this.wanted.length, finest }
  }

  // Before a frame: what is wanted from where the eye is now, in a window of so many pixels.
  update(camera: PerspectiveCamera, height: number): void {
    this.turn++
    this.object.updateWorldMatrix(true, false)
    this.matrix.copy(this.object.matrixWorld).invert()
    this.eye.setFromMatrixPosition(camera.matrixWorld).applyMatrix4(this.matrix)
    this.frustum.setFromProjectionMatrix(
      this.matrix.multiplyMatrices(camera.projectionMatrix, camera.matrixWorldInverse).multiply(this.object.matrixWorld),
    )
    const focal = height / (2 * Math.tan((camera.fov * Math.PI) / 360))
    const leaves = this.choose(focal)
    this.wanted = [this.root, ...leaves].filter((node) => !node.mesh && !node.isAsked)
    this.show(this.cover(this.root) ?? [])
    this.ask()
    this.forget()
  }

  // Moves an eye that is in the ground out of it, to so much above; true when it was. Tiles that are coarse for the distance at which it looks do not
  // know well enough where the ground is.
  raise(eye: Vector3, above: number, distance: number): boolean {
    this.object.updateWorldMatrix(true, false)
    const at = this.object.worldToLocal(eye.clone())
    for (const node of this.shown) {
      if (!node.mesh || at.x < node.box.min.x || at.y < node.box.min.y || at.x > node.box.max.x || at.y > node.box.max.y) continue
      const cell = Math.max(this.shape.size[0], this.shape.size[1]) * 2 ** node.level
      if (node.level > 0 && cell > distance / 4) return false
      const lowest = heightIn(node, at.x, at.y) + above
      if (at.z >= lowest) return false
      at.z = lowest
      eye.copy(this.object.localToWorld(at))
      return true
    }
    return false
  }

  dispose(): void {
    this.isGone = true
    this.object.removeFromParent()
    this.look.regions?.dispose()
    for (const node of this.kept) drop(node)
    this.kept.clear()
    this.shown.clear()
  }

  private node(level: number, u: number, v: number): Node | null {
    const { nx = 0, ny = 0, size, ground } = this.shape
    const reach = CELLS << level
    if (u * reach >= nx - 1 || v * reach >= ny - 1) return null
    const place = (i: number, n: number, d: number): number => (Math.min(i, n - 1) - (n - 1) / 2) * d
    const box = new Box3(
      new Vector3(place(u * reach, nx, size[0]), place(v * reach, ny, size[1]), ground?.low ?? 0),
      new Vector3(place((u + 1) * reach, nx, size[0]), place((v + 1) * reach, ny, size[1]), ground?.high ?? 0),
    )
    const unseen = { isSplit: false, size: 0, isSeen: false, stride: this.look.stride, used: 0, cut: -1 }
    return { level, u, v, box, children: null, mesh: null, isAsked: false, askAfter: 0, ...unseen }
  }

  private childrenOf(node: Node): Node[] {
    if (node.children || node.level === 0) return node.children ?? []
    const { level, u, v } = node
    const four = [0, 1, 2, 3].map((k) => this.node(level - 1, 2 * u + (k & 1), 2 * v + (k >> 1)))
    node.children = four.filter((child) => child !== null)
    // Until its own heights are known, a tile lies where the coarser one does.
    for (const child of node.children) {
      child.box.min.z = node.box.min.z
      child.box.max.z = node.box.max.z
    }
    return node.children
  }

  // The tiles that are wanted, each with the size that a cell of it seems to have. What looks largest is made finer, as long as there are triangles:
  // those of tiles in sight count.
  private choose(focal: number): Node[] {
    const { budget, pixels, stride } = this.look
    const measure = (node: Node): Node => {
      const cell = Math.max(this.shape.size[0], this.shape.size[1]) * stride * 2 ** node.level
      const near = Math.max(node.box.distanceToPoint(this.eye), 0.3)
      node.isSeen = this.frustum.intersectsBox(node.box)
      node.size = ((cell * focal) / near) * (node.isSeen ? 1 : ASIDE)
      node.isSplit = false
      node.stride = stride
      node.used = this.turn
      if (node.isSeen) left -= trianglesOf(stride)
      return node
    }
    const most = (3 * budget) / trianglesOf(stride) // tiles, those out of sight too
    let left = budget
    const leaves = [measure(this.root)]
    for (;;) {
      let largest = -1
      for (let i = 0; i < leaves.length; i++) {
        const { level, size, stride: lines } = leaves[i] as Node
        if (size > pixels && (level > 0 || lines > 1) && (largest < 0 || size > (leaves[largest] as Node).size)) largest = i
      }
      if (largest < 0) break
      const node = leaves[largest] as Node
      // The finest tiles get all of their lines, the others become four.
      const more = node.level > 0 ? 3 * trianglesOf(stride) : trianglesOf(1) - trianglesOf(stride)
      if (left < more || leaves.length + 3 > most) break
      if (node.level > 0) {
        node.isSplit = true
        if (node.isSeen) left += trianglesOf(stride)
        leaves.splice(largest, 1, ...this.childrenOf(node).map(measure))
      } else {
        if (node.isSeen) left -= more
        node.stride = 1
        node.size *= 1 / stride
      }
    }
    return leaves.sort((a, b) => b.size - a.size)
  }

  // Tiles with a mesh that cover a node, as it is wanted where that can be; null when nothing does.
  private cover(node: Node): Node[] | null {
    if ((node.isSplit || !node.mesh) && node.children) {
      const finer = node.children.map((child) => this.cover(child))
      if (finer.every((list) => list !== null)) return finer.flat()
    }
    return node.mesh ? [node] : null
  }

  private show(nodes: Node[]): void {
    const now = new Set(nodes)
    for (const node of this.shown) if (!now.has(node)) node.mesh?.removeFromParent()
    for (const node of now) {
      node.used = this.turn
      if (!node.mesh) continue
      node.mesh.geometry.setIndex(patchIndex(CELLS, node.stride))
      if (node.cut !== this.look.cut.version) this.dress(node, node.mesh)
      if (!this.shown.has(node)) this.object.add(node.mesh)
    }
    this.shown = now
  }

  // A tile with something finer in its place leaves out pixels, or all of it.
  private dress(node: Node, mesh: Mesh): void {
    const share = cutShare(this.look.cut, node.box)
    const isCut = share === 'part'
    const photo = mesh.userData.photo as Texture | null
    node.cut = this.look.cut.version
    mesh.visible = share !== 'all'
    if (mesh.userData.isCut === isCut) return
    if (photo) (mesh.material as Material).dispose()
    mesh.material = this.look.material(photo, isCut)
    mesh.userData.isCut = isCut
    this.look.finish?.(mesh, isCut)
  }

  private ask(): void {
    const now = performance.now()
    while (this.underWay < AT_ONCE && !this.isGone) {
      const at = this.wanted.findIndex((node) => now >= node.askAfter)
      if (at < 0) return
      const [node] = this.wanted.splice(at, 1) as [Node]
      node.isAsked = true
      this.underWay++
      void this.fetch(node).then((isThere) => {
        this.underWay--
        node.isAsked = false
        if (!isThere) {
          node.askAfter = performance.now() + PATIENCE
          window.setTimeout(() => this.changed(), PATIENCE)
        }
        this.ask()
        this.changed()
      })
    }
  }

  private async fetch(node: Node): Promise<boolean> {
    const path = `${this.tiles}/${node.level}/${node.u}_${node.v}`
    try {
      const [heights, photo] = await Promise.all([
        getBytes(`${path}.field`, 4 * SIDE * SIDE),
        this.shape.ground?.photo ? getBytes(`${path}.photo`, 4 * PIXELS * PIXELS) : null,
      ])
      if (!this.isGone && !node.mesh) this.build(node, new Float32Array(heights), photo && photoTexture(photo, PIXELS))
      return true
    } catch {
      return false // an epoch that has passed, a line that broke, a file that is gone: later, perhaps
    }
  }

  private build(node: Node, z: Float32Array, photo: Texture | null): void {
    const { nx = 0, ny = 0, size } = this.shape
    const line = (at: number, n: number, d: number): Float32Array =>
      Float32Array.from({ length: SIDE }, (_, i) => (Math.min(Math.max((at * CELLS + i - BORDER) * 2 ** node.level, 0), n - 1) - (n - 1) / 2) * d)
    const dx = size[0] * 2 ** node.level
    const dy = size[1] * 2 ** node.level
    const patch: Patch = { z, side: SIDE, cells: CELLS, dx, dy, x: line(node.u, nx, size[0]), y: line(node.v, ny, size[1]) }
    const geometry = patchGeometry(patch, this.look.shade, Math.max(dx, dy), { hasPhoto: photo !== null, bake: this.look.bake })
    const mesh = new Mesh(geometry, this.look.material(photo, false))
    mesh.userData = { shape: this.object.userData.shape as number, photo, isCut: false }
    mesh.matrixAutoUpdate = false
    this.look.finish?.(mesh, false)
    geometry.setIndex(patchIndex(CELLS, node.stride))
    geometry.computeBoundingBox()
    node.box.min.z = (geometry.boundingBox as Box3).min.z
    node.box.max.z = (geometry.boundingBox as Box3).max.z
    node.mesh = mesh
    node.cut = -1
    this.kept.add(node)
  }

  // Of what is neither wanted nor shown, the oldest goes when there is too much.
  private forget(): void {
    if (this.kept.size <= this.most) return
    const idle = [...this.kept].filter((node) => node.used < this.turn && !this.shown.has(node)).sort((a, b) => a.used - b.used)
    for (const node of idle.slice(0, this.kept.size - this.most)) {
      drop(node)
      this.kept.delete(node)
    }
  }
}

// With its skirt, which has two sides.
function trianglesOf(stride: number): number {
  const cells = CELLS / stride
  return 2 * cells * cells + 16 * cells
}

// On the triangle that it is on: cells are cut from their first corner to the one across, here as in the simulator.
function heightIn(node: Node, x: number, y: number): number {
  const n = CELLS + 1
  const p = (node.mesh as Mesh).geometry.getAttribute('position')
  const share = (value: number, i: number, read: (k: number) => number, step: number): number => {
    const way = read((i + 1) * step) - read(i * step)
    return way > 0 ? Math.min(Math.max((value - read(i * step)) / way, 0), 1) : 0
  }
  const find = (value: number, read: (k: number) => number, step: number): number => {
    let i = 0
    while (i < CELLS - 1 && read((i + 1) * step) < value) i++
    return i
  }
  const i = find(x, (k) => p.getX(k), 1)
  const j = find(y, (k) => p.getY(k), n)
  const [a, b] = [share(x, i, (k) => p.getX(k), 1), share(y, j, (k) => p.getY(k), n)]
  const k = j * n + i
  const [near, far] = [p.getZ(k), p.getZ(k + n + 1)]
  const side = a > b ? p.getZ(k + 1) : p.getZ(k + n)
  return near + Math.max(a, b) * (side - near) + Math.min(a, b) * (far - side)
}

function drop(node: Node): void {
  if (!node.mesh) return
  node.mesh.removeFromParent()
  node.mesh.geometry.setIndex(null) // that one is shared
  node.mesh.geometry.dispose()
  const photo = node.mesh.userData.photo as Texture | null
  if (photo) {
    photo.dispose()
    ;(node.mesh.material as Material).dispose()
  }
  node.mesh = null
}
