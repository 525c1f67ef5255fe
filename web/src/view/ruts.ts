// Ruts: tiles of beds of soil that something has touched, drawn as they are now in place of the ground, which is cut out below them.
//
// The simulator tells how each column has changed; the ground that it was before is fetched once for each tile. Only the tiles nearest to the eye are
// drawn, the farther the fewer of their lines.
import { DataTexture, Group, Mesh, NearestFilter, RedFormat, Vector3, type BufferGeometry, type Material, type PerspectiveCamera, type Texture } from 'three'
import type { BedInfo, RutTile } from '../app'
import { getBytes, patchGeometry, patchIndex, photoTexture, type Patch, type Shade } from './field'
import { matrixOf } from './shapes'
import type { Cut } from './surfaces'

const TILE = 64 // columns of a tile, each way
const SIDE = TILE + 3 // of the ground below it: up to the next tile, and one more on each side
const PIXELS = 64 // of its photograph, each way
const PATIENCE = 2000 // ms until what was refused is asked for again
const AT_ONCE = 4 // requests under way

export interface RutLook {
  shade: Shade
  material: (photo: Texture | null) => Material
  hasPhoto: boolean
  finish: (mesh: Mesh) => void
  step: number // every how many columns are drawn at most
  pixels: number // a line that is closer to the next one is left out
  most: number // tiles
  atOnce: number // that are made anew for one frame
}

interface Tile {
  rut: RutTile
  ground: Float32Array | null
  photo: Texture | null
  isAsked: boolean
  askAfter: number
  isOld: boolean // the mesh is of before
  mesh: Mesh | null
  distance: number
}

export class Ruts {
  readonly object = new Group()
  private readonly tiles = new Map<string, Tile>()
  private readonly mask: DataTexture
  private readonly wide: number // tiles
  private underWay = 0
  private isGone = false
  private readonly eye = new Vector3()

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
    this.wide = Math.ceil(bed.nx / TILE)
    const high = Math.ceil(bed.ny / TILE)
    this.mask = new DataTexture(new Uint8Array(this.wide * high), this.wide, high, RedFormat)
    this.mask.minFilter = this.mask.magFilter = NearestFilter
    this.mask.unpackAlignment = 1
    this.mask.needsUpdate = true
    const corner = new Vector3(this.place(0, bed.nx), this.place(0, bed.ny), 0).applyMatrix4(X_GB)
    cut.uCut.value = this.mask
    cut.uCutRim.value = 0.6 * bed.spacing
    cut.uCutAt.value.set(corner.x, corner.y, 1 / (this.wide * TILE * bed.spacing), 1 / (high * TILE * bed.spacing))
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
    else this.tiles.set(key, { rut, ground: null, photo: null, isAsked: false, askAfter: 0, isOld: true, mesh: null, distance: 0 })
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
    const reach = (TILE * this.bed.spacing) / 2
    const level = this.tiles.values().next().value?.ground?.[0] ?? this.eye.z - 1
    for (const tile of this.tiles.values()) {
      const x = this.place(tile.rut.u * TILE, this.bed.nx) + reach
      const y = this.place(tile.rut.v * TILE, this.bed.ny) + reach
      const flat = Math.max(Math.hypot(x - this.eye.x, y - this.eye.y) - 1.42 * reach, 0)
      tile.distance = Math.max(Math.hypot(flat, (tile.ground?.[SIDE * 33] ?? level) - this.eye.z), 0.2)
    }
    const near = [...this.tiles.values()].sort((a, b) => a.distance - b.distance)
    near.slice(this.look.most).forEach((tile) => drop(tile))
    let left = this.look.atOnce
    for (const tile of near.slice(0, this.look.most)) {
      if (!tile.ground) this.ask(tile)
      else if (tile.isOld && left > 0) {
        this.build(tile)
        left--
      }
      if (!tile.mesh) continue
      const line = (this.bed.spacing * this.look.step * focal) / tile.distance
      let stride = 1
      while (line * stride < this.look.pixels && stride < 16) stride *= 2
      tile.mesh.geometry.setIndex(patchIndex(TILE / this.look.step, Math.min(stride, TILE / this.look.step)))
    }
    if (near.slice(0, this.look.most).some((tile) => tile.isOld && tile.ground)) this.changed()
    this.draw()
  }

  dispose(): void {
    this.isGone = true
    this.object.removeFromParent()
    for (const tile of this.tiles.values()) {
      drop(tile)
      tile.photo?.dispose()
    }
    this.tiles.clear()
    this.cut.uCut.value = null
    this.cut.uCutAt.value.set(0, 0, 0, 0)
    this.mask.dispose()
  }

  private place(column: number, n: number): number {
    return (Math.min(Math.max(column, 0), n - 1) - (n - 1) / 2) * this.bed.spacing
  }

  // The ground is cut out where a tile is drawn, and nowhere else.
  private draw(): void {
    const data = this.mask.image.data as Uint8Array
    for (const tile of this.tiles.values()) {
      const at = tile.rut.v * this.wide + tile.rut.u
      const now = tile.mesh ? 255 : 0
      if (data[at] !== now) {
        data[at] = now
        this.mask.needsUpdate = true
      }
    }
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
    // What was pressed is smooth and darker, what came up beside it a little.
    const tint = (k: number): number => {
      const c = change[k] as number
      return c < 0 ? 1 - 0.42 * Math.min(-c / 0.03, 1) : 1 - 0.12 * Math.min(c / 0.01, 1)
    }
    const geometry = patchGeometry(patch, shade, 4 * spacing, { flare: 4 * spacing, tint, hasPhoto: this.look.hasPhoto })
    if (tile.mesh) {
      release(tile.mesh.geometry)
      tile.mesh.geometry = geometry
    } else {
      tile.mesh = new Mesh(geometry, this.look.material(tile.photo))
      tile.mesh.userData.shape = this.shape
      tile.mesh.matrixAutoUpdate = false
      this.object.add(tile.mesh)
    }
    this.look.finish(tile.mesh)
    geometry.computeBoundingSphere()
    tile.isOld = false
  }
}

function release(geometry: BufferGeometry): void {
  geometry.setIndex(null) // that one is shared
  geometry.dispose()
}

// What is far away is made anew when it comes near; its ground is kept, its photograph too.
function drop(tile: Tile): void {
  if (!tile.mesh) return
  tile.mesh.removeFromParent()
  release(tile.mesh.geometry)
  if (tile.photo) (tile.mesh.material as Material).dispose()
  tile.mesh = null
  tile.isOld = true
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
