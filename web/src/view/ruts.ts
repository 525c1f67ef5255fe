// Ruts: tiles of beds of soil that something has touched, drawn as they are now in place of the ground, which is cut out below them.
//
// The simulator tells how each column has changed; the ground that it was before is fetched once for each tile. Only the tiles nearest to the eye are
// drawn, the farther the fewer of their lines, and of each only those squares of 16 columns in which something has changed.
import { DataTexture, Group, Mesh, NearestFilter, RedFormat, Vector3, type Material, type PerspectiveCamera, type Texture } from 'three'
import type { BedInfo, RutTile } from '../app'
import { getBytes, partIndex, patchGeometry, photoTexture, type Bake, type Patch, type Shade } from './field'
import { matrixOf } from './shapes'
import type { Cut } from './surfaces'

const TILE = 64 // columns of a tile, each way
const SIDE = TILE + 3 // of the ground below it: up to the next tile, and one more on each side
const PIXELS = 64 // of its photograph, each way
const PARTS = 4 // squares of a tile, each way
const MASK_MOST = 4096 // its side; larger beds are cut out by whole tiles
const TOUCHED = 1e-4 // m: what has changed by less is not seen
const PATIENCE = 2000 // ms until what was refused is asked for again
const AT_ONCE = 4 // requests under way
const ORDER_WAY = 0.2 // m that the eye moves before it is worked out anew what is near
const NEAR = 12 // m, nearer than which ruts are lines, not blots: lines of the mesh are no farther apart than half a wheel's width
const RUT = 0.06 // m, that distance
const BUILD_TIME = 1.5 // ms of a frame in which tiles are made anew, at least one

export interface RutLook {
  shade: Shade
  material: (photo: Texture | null) => Material
  hasPhoto: boolean
  bake?: Bake | undefined
  finish: (mesh: Mesh) => void
  step: number // every how many columns are drawn at most
  pixels: number // a line that is closer to the next one is left out
  most: number // tiles
}

interface Tile {
  rut: RutTile
  ground: Float32Array | null
  photo: Texture | null
  isAsked: boolean
  askAfter: number
  isOld: boolean // the mesh is of before
  mesh: Mesh | null
  stride: number // every how many lines the mesh has
  bits: number // squares that have changed
  isDrawn: boolean // as they are in the index
  distance: number
}

export class Ruts {
  readonly object = new Group()
  private readonly tiles = new Map<string, Tile>()
  private readonly mask: DataTexture
  private readonly parts: number // squares of a tile, each way
  private readonly wide: number // squares
  private underWay = 0
  private isGone = false
  private readonly eye = new Vector3()
  private near: Tile[] = [] // those that are drawn, as they were seen from `orderedAt`
  private readonly orderedAt = new Vector3()
  private isOther = true // there are others than when that was worked out

  constructor(
    private readonly bed: BedInfo,
    private readonly shape: number,
    private readonly cut: Cut,
    X_GB: ReturnType<typeof matrixOf>,
    private readonly look: RutLook,
    private readonly changed: () => void,
  ) {
    this.object.name = 'ground'
    this.object.applyMatrix4(matrixOf(bed.p, bed.q))
    const [nu, nv] = [Math.ceil(bed.nx / TILE), Math.ceil(bed.ny / TILE)]
    this.parts = PARTS * Math.max(nu, nv) <= MASK_MOST ? PARTS : 1
    this.wide = nu * this.parts
    const high = nv * this.parts
    this.mask = new DataTexture(new Uint8Array(this.wide * high), this.wide, high, RedFormat)
    this.mask.minFilter = this.mask.magFilter = NearestFilter
    this.mask.unpackAlignment = 1
    this.mask.needsUpdate = true
    const corner = new Vector3(this.place(0, bed.nx), this.place(0, bed.ny), 0).applyMatrix4(X_GB)
    const { uCut, uCutRim, uCutAt } = cut.uniforms
    uCut.value = this.mask
    uCutRim.value = 0.6 * bed.spacing
    uCutAt.value.set(corner.x, corner.y, 1 / (nu * TILE * bed.spacing), 1 / (nv * TILE * bed.spacing))
  }

  get count(): { touched: number; shown: number; missing: number } {
    const tiles = [...this.tiles.values()]
    return {
      touched: tiles.length,
      shown: tiles.filter((tile) => tile.mesh?.parent).length,
      missing: tiles.filter((tile) => !tile.mesh || tile.isOld).length,
    }
  }

  take(rut: RutTile): void {
    const key = `${rut.u}_${rut.v}`
    const tile = this.tiles.get(key)
    const before = tile?.rut
    if (tile) Object.assign(tile, { rut, isOld: true })
    else {
      this.isOther = true
      const undrawn = { isOld: true, mesh: null, stride: 1, bits: 0, isDrawn: false, distance: 0 }
      this.tiles.set(key, { rut, ground: null, photo: null, isAsked: false, askAfter: 0, ...undrawn })
    }
    // Tiles beside it show its rim too.
    for (let dv = -1; dv <= 1; dv++)
      for (let du = -1; du <= 1; du++) {
        const other = this.tiles.get(`${rut.u + du}_${rut.v + dv}`)
        if (other && (du || dv) && !other.isOld) other.isOld = hasOtherRim(before, rut, du, dv)
      }
  }

  // Before a frame: which tiles are drawn, and how finely.
  update(camera: PerspectiveCamera, height: number): void {
    if (this.tiles.size === 0) return
    this.object.updateWorldMatrix(true, false)
    this.eye.setFromMatrixPosition(camera.matrixWorld)
    this.object.worldToLocal(this.eye)
    const focal = height / (2 * Math.tan((camera.fov * Math.PI) / 360))
    if (this.isOther || this.eye.distanceTo(this.orderedAt) > ORDER_WAY) this.order()
    let end = 0 // ms, of the time for making tiles
    for (const tile of this.near) {
      if (!tile.ground) this.ask(tile)
      else if (tile.isOld && (end === 0 || performance.now() < end)) {
        if (end === 0) end = performance.now() + BUILD_TIME
        this.build(tile)
      }
      if (!tile.mesh) continue
      const line = (this.bed.spacing * this.look.step * focal) / tile.distance
      let stride = 1
      const widest = tile.distance < NEAR ? RUT / (this.bed.spacing * this.look.step) : Infinity
      while (line * stride < this.look.pixels && stride < 16 && 2 * stride <= widest) stride *= 2
      if (tile.isDrawn && tile.stride === stride) continue
      tile.mesh.geometry.dispose() // it is sent anew, and the last index is not left behind
      tile.mesh.geometry.setIndex(partIndex(TILE / this.look.step, stride, this.parts, tile.bits))
      Object.assign(tile, { stride, isDrawn: true })
    }
    if (this.near.some((tile) => tile.isOld && tile.ground)) this.changed()
    this.draw()
  }

  // The tiles that are drawn, nearest first.
  private order(): void {
    const reach = (TILE * this.bed.spacing) / 2
    const level = this.tiles.values().next().value?.ground?.[0] ?? this.eye.z - 1
    for (const tile of this.tiles.values()) {
      const x = this.place(tile.rut.u * TILE, this.bed.nx) + reach
      const y = this.place(tile.rut.v * TILE, this.bed.ny) + reach
      const flat = Math.max(Math.hypot(x - this.eye.x, y - this.eye.y) - 1.42 * reach, 0)
      tile.distance = Math.max(Math.hypot(flat, (tile.ground?.[SIDE * 33] ?? level) - this.eye.z), 0.2)
    }
    this.near = [...this.tiles.values()].sort((a, b) => a.distance - b.distance)
    for (const tile of this.near.splice(this.look.most)) drop(tile)
    this.orderedAt.copy(this.eye)
    this.isOther = false
  }

  dispose(): void {
    this.isGone = true
    this.object.removeFromParent()
    for (const tile of this.tiles.values()) {
      drop(tile)
      tile.photo?.dispose()
    }
    this.tiles.clear()
    this.cut.uniforms.uCut.value = null
    this.cut.version++
    this.mask.dispose()
  }

  private place(column: number, n: number): number {
    return (Math.min(Math.max(column, 0), n - 1) - (n - 1) / 2) * this.bed.spacing
  }

  // The ground is cut out where a tile is drawn, and nowhere else.
  private draw(): void {
    const data = this.mask.image.data as Uint8Array
    let isOther = false
    for (const tile of this.tiles.values()) {
      const bits = tile.mesh ? tile.bits : 0
      for (let k = 0; k < this.parts * this.parts; k++) {
        const at = (tile.rut.v * this.parts + Math.floor(k / this.parts)) * this.wide + tile.rut.u * this.parts + (k % this.parts)
        const now = bits & (1 << k) ? 255 : 0
        isOther ||= data[at] !== now
        data[at] = now
      }
    }
    if (!isOther) return
    this.mask.needsUpdate = true
    this.cut.version++
  }

  private ask(tile: Tile): void {
    if (tile.isAsked || this.underWay >= AT_ONCE || performance.now() < tile.askAfter) return
    tile.isAsked = true
    this.underWay++
    const path = `${this.bed.tiles}/${tile.rut.u}_${tile.rut.v}`
    void Promise.all([getBytes(`${path}.field`, 4 * SIDE * SIDE), this.look.hasPhoto ? getBytes(`${path}.photo`, 4 * PIXELS * PIXELS) : null])
      .then(([ground, photo]) => {
        tile.photo = photo && photoTexture(photo, PIXELS)
        tile.ground = new Float32Array(ground)
        this.isOther = true
      })
      .catch(() => {
        tile.askAfter = performance.now() + PATIENCE
        window.setTimeout(() => this.changed(), PATIENCE)
      })
      .finally(() => {
        tile.isAsked = false
        this.underWay--
        if (!this.isGone) this.changed()
      })
  }

  private build(tile: Tile): void {
    const { nx, ny, spacing } = this.bed
    const { u, v } = tile.rut
    const { step, shade } = this.look
    const ground = tile.ground as Float32Array
    const cells = TILE / step
    const side = cells + 3
    // Of the samples of the ground: the line before the tile, those of the tile, and the one after the next tile's first.
    const picks = Int32Array.from({ length: side }, (_, i) => Math.min(Math.max((i - 1) * step + 1, 0), SIDE - 1))
    const beside = [-1, 0, 1].map((dv) => [-1, 0, 1].map((du) => this.tiles.get(`${u + du}_${v + dv}`)?.rut))
    const z = new Float32Array(side * side)
    const change = new Float32Array(side * side)
    for (let j = 0, k = 0; j < side; j++) {
      const y = (picks[j] as number) - 1
      const row = beside[y < 0 ? 0 : y < TILE ? 1 : 2] as (RutTile | undefined)[]
      for (let i = 0; i < side; i++, k++) {
        const x = (picks[i] as number) - 1
        const rut = row[x < 0 ? 0 : x < TILE ? 1 : 2]
        if (rut) change[k] = rut.unit * (rut.change[(y & (TILE - 1)) * TILE + (x & (TILE - 1))] as number)
        z[k] = (ground[(picks[j] as number) * SIDE + (picks[i] as number)] as number) + (change[k] as number)
      }
    }
    const line = (at: number, n: number): Float32Array => Float32Array.from(picks, (pick) => this.place(at * TILE + pick - 1, n))
    const patch: Patch = { z, side, cells, dx: spacing * step, dy: spacing * step, x: line(u, nx), y: line(v, ny) }
    // Disturbed soil is darker from the first millimetres on, so that a shallow rut is a line from far away; what was pressed the darker the deeper.
    const tint = (k: number): number => {
      const c = change[k] as number
      return c < 0 ? 1 - 0.2 * Math.min(-c / 0.003, 1) - 0.28 * Math.min(-c / 0.03, 1) : 1 - 0.12 * Math.min(c / 0.005, 1)
    }
    const options = { flare: 4 * spacing, tint, parts: this.parts, hasPhoto: this.look.hasPhoto, bake: this.look.bake }
    const geometry = patchGeometry(patch, shade, 4 * spacing, options, tile.mesh?.geometry)
    if (!tile.mesh) {
      tile.mesh = new Mesh(geometry, this.look.material(tile.photo))
      tile.mesh.userData.shape = this.shape
      tile.mesh.matrixAutoUpdate = false
      this.look.finish(tile.mesh)
      this.object.add(tile.mesh)
    }
    geometry.computeBoundingSphere()
    tile.isOld = false
    const bits = this.squares(change, cells)
    if (bits !== tile.bits) Object.assign(tile, { bits, isDrawn: false })
  }

  // Squares in which something has changed, or so near to them that it would be seen at their rim.
  private squares(change: Float32Array, cells: number): number {
    const c = cells / this.parts
    const side = cells + 3
    const square = (line: number): number => Math.min(Math.max(Math.floor(line / c), 0), this.parts - 1)
    let bits = 0
    for (let j = 0, k = 0; j < side; j++)
      for (let i = 0; i < side; i++, k++) {
        if (Math.abs(change[k] as number) < TOUCHED) continue
        // Sample i is at line i - 1 of the grid; a square reaches over its last line, and two lines further.
        for (let v = square(j - 4); v <= square(j + 2); v++) for (let u = square(i - 4); u <= square(i + 2); u++) bits |= 1 << (v * this.parts + u)
      }
    return bits
  }
}

// What is far away is made anew when it comes near; its ground is kept, its photograph too.
function drop(tile: Tile): void {
  if (!tile.mesh) return
  tile.mesh.removeFromParent()
  tile.mesh.geometry.dispose()
  if (tile.photo) (tile.mesh.material as Material).dispose()
  Object.assign(tile, { mesh: null, isOld: true, isDrawn: false })
}

// Has the rim towards a neighbour changed?
function hasOtherRim(before: RutTile | undefined, now: RutTile, du: number, dv: number): boolean {
  const range = (d: number): [number, number] => (d < 0 ? [0, 2] : d > 0 ? [TILE - 2, TILE] : [0, TILE])
  const [x0, x1] = range(du)
  const [y0, y1] = range(dv)
  for (let y = y0; y < y1; y++)
    for (let x = x0; x < x1; x++) {
      const k = y * TILE + x
      const was = before ? before.unit * (before.change[k] as number) : 0
      if (Math.abs(was - now.unit * (now.change[k] as number)) > 2e-5) return true
    }
  return false
}
