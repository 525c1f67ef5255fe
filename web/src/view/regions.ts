// Regions of a ground: a picture of it from above, in a colour for each material, that tints the ground where it lies.
import { CanvasTexture, LinearFilter, LinearMipmapLinearFilter, Vector4, type Texture } from 'three'
import type { RegionInfo, RegionRow, ShapeInfo, World } from '../app'
import { getBytes } from './field'

const PIXELS = { few: 1024, many: 2048 } // of the picture's longer side at most
const FINEST = 0.02 // m: its pixels are no smaller

// Shared by all ground: how strongly regions show, 0 to 1.
export const regionStrength = { value: 0 }

export interface RegionUniforms {
  uRegion: { value: Texture | null }
  uRegionAt: { value: Vector4 } // the picture's corner in the mesh's x and y, and one over its size
  uRegionShare: { value: number }
}

// The hue changes and the light stays: ruts and slopes are seen in regions as beside them. Where nothing lies the picture is black and clear, so that
// its colour is that of the region also at the rim, where pixels are mixed.
export const REGION_FUNCTION = `
  uniform sampler2D uRegion;
  uniform vec4 uRegionAt;
  uniform float uRegionShare;
  vec3 regionTint(vec3 c, vec2 at, float share) {
    vec2 m = (at - uRegionAt.xy) * uRegionAt.zw;
    vec4 t = texture2D(uRegion, m);
    if (m.x < 0.0 || m.y < 0.0 || m.x > 1.0 || m.y > 1.0) return c;
    const vec3 eye = vec3(0.3, 0.6, 0.1);
    return mix(c, t.rgb * dot(c, eye) / max(dot(t.rgb, eye), 0.01), share * uRegionShare * t.a);
  }`

// A colour for each material of a world, those of neighbours in its list far apart.
export function materialColor(world: World, material: string): string {
  const index = Math.max(
    world.materials.findIndex((one) => one.name === material),
    0,
  )
  return `hsl(${(200 + 137.5 * index) % 360} 60% 58%)`
}

// What region i is made of now; `rows` may be those of another epoch.
export function regionMaterial(world: World, rows: RegionRow[], i: number): string {
  const region = world.regions[i] as RegionInfo
  const row = rows[i]
  return row?.name === region.name ? row.material : region.material
}

// What makes the regions of a shape the same ones after an edit.
export function regionsKey(world: World, shape: number): string {
  return JSON.stringify(world.regions.filter((region) => region.shape === shape).map(({ name, polygon, min, max }) => [name, polygon, min, max]))
}

export class RegionMap {
  readonly uniforms: RegionUniforms
  private readonly canvas = document.createElement('canvas')
  private readonly texture: CanvasTexture
  private readonly low: [number, number]
  private readonly high: [number, number]
  private readonly masks = new Map<number, HTMLCanvasElement | null>() // by the place among the ground's regions; null: on its way
  private isGone = false

  private constructor(
    private readonly shape: number,
    regions: RegionInfo[],
    size: { x: number; y: number }, // of the ground, about its middle
    isPlain: boolean,
    private readonly changed: () => void,
  ) {
    const least = (axis: 0 | 1): number => Math.min(...regions.map((region) => region.min[axis]))
    const most = (axis: 0 | 1): number => Math.max(...regions.map((region) => region.max[axis]))
    this.low = [Math.max(least(0), -size.x / 2), Math.max(least(1), -size.y / 2)]
    this.high = [Math.max(Math.min(most(0), size.x / 2), this.low[0] + FINEST), Math.max(Math.min(most(1), size.y / 2), this.low[1] + FINEST)]
    const [wide, deep] = [this.high[0] - this.low[0], this.high[1] - this.low[1]]
    const pixel = Math.max(Math.max(wide, deep) / (isPlain ? PIXELS.few : PIXELS.many), FINEST)
    this.canvas.width = Math.max(Math.ceil(wide / pixel), 1)
    this.canvas.height = Math.max(Math.ceil(deep / pixel), 1)
    this.texture = new CanvasTexture(this.canvas)
    this.texture.magFilter = LinearFilter
    this.texture.minFilter = LinearMipmapLinearFilter
    this.texture.anisotropy = isPlain ? 1 : 4
    const at = new Vector4(this.low[0], this.low[1], 1 / wide, 1 / deep)
    this.uniforms = { uRegion: { value: this.texture }, uRegionAt: { value: at }, uRegionShare: regionStrength }
  }

  // Null for ground without regions.
  static of(world: World, shape: number, isPlain: boolean, changed: () => void): RegionMap | null {
    const regions = world.regions.filter((region) => region.shape === shape)
    const { kind, nx = 1, ny = 1, size } = world.shapes[shape] as ShapeInfo
    const isField = kind === 'height-field'
    const extent = { x: isField ? (nx - 1) * size[0] : Infinity, y: isField ? (ny - 1) * size[1] : Infinity }
    return regions.length > 0 ? new RegionMap(shape, regions, extent, isPlain, changed) : null
  }

  // For a mesh whose origin is at (x, y) of the ground.
  moved(x: number, y: number): RegionUniforms {
    const { x: u, y: v, z, w } = this.uniforms.uRegionAt.value
    return { ...this.uniforms, uRegionAt: { value: new Vector4(u - x, v - y, z, w) } }
  }

  // Each region in the colour of what it is made of now, later ones over earlier ones; what is made of the ground's own material shows the ground.
  paint(world: World, rows: RegionRow[]): void {
    const pen = this.canvas.getContext('2d') as CanvasRenderingContext2D
    const { width, height } = this.canvas
    const own = world.shapes[this.shape]?.surface
    pen.setTransform(1, 0, 0, 1, 0, 0)
    pen.clearRect(0, 0, width, height)
    const [sx, sy] = [width / (this.high[0] - this.low[0]), height / (this.high[1] - this.low[1])]
    pen.setTransform(sx, 0, 0, -sy, -this.low[0] * sx, this.high[1] * sy)
    let place = -1
    world.regions.forEach((region, i) => {
      if (region.shape !== this.shape) return
      place++
      const material = regionMaterial(world, rows, i)
      pen.globalCompositeOperation = material === own ? 'destination-out' : 'source-over'
      pen.fillStyle = materialColor(world, material)
      if (region.polygon) fillPolygon(pen, region.polygon)
      else this.fillMask(pen, region, place, () => this.paint(world, rows))
    })
    this.texture.needsUpdate = true
    this.changed()
  }

  dispose(): void {
    this.isGone = true
    this.texture.dispose()
  }

  private fillMask(pen: CanvasRenderingContext2D, region: RegionInfo, place: number, again: () => void): void {
    const mask = this.masks.get(place)
    if (mask === undefined && region.mask) {
      const { nx, ny, path } = region.mask
      this.masks.set(place, null)
      getBytes(path, nx * ny)
        .then((bytes) => {
          this.masks.set(place, stencil(new Uint8Array(bytes), nx, ny))
          if (!this.isGone) again()
        })
        .catch(() => this.masks.delete(place)) // of an epoch that has passed: the next one asks again
    }
    if (!mask) return
    // The stencil in the region's colour, its first row at the least y.
    const tinted = document.createElement('canvas')
    Object.assign(tinted, { width: mask.width, height: mask.height })
    const brush = tinted.getContext('2d') as CanvasRenderingContext2D
    brush.drawImage(mask, 0, 0)
    brush.globalCompositeOperation = 'source-in'
    brush.fillStyle = pen.fillStyle
    brush.fillRect(0, 0, mask.width, mask.height)
    pen.imageSmoothingEnabled = false
    pen.drawImage(tinted, region.min[0], region.min[1], region.max[0] - region.min[0], region.max[1] - region.min[1])
  }
}

function fillPolygon(pen: CanvasRenderingContext2D, corners: number[]): void {
  pen.beginPath()
  for (let k = 0; k + 1 < corners.length; k += 2) pen.lineTo(corners[k] as number, corners[k + 1] as number)
  pen.closePath()
  pen.fill('evenodd')
}

function stencil(bytes: Uint8Array, nx: number, ny: number): HTMLCanvasElement {
  const canvas = document.createElement('canvas')
  Object.assign(canvas, { width: nx, height: ny })
  const pen = canvas.getContext('2d') as CanvasRenderingContext2D
  const image = pen.createImageData(nx, ny)
  bytes.forEach((value, k) => (image.data[4 * k + 3] = value ? 255 : 0))
  pen.putImageData(image, 0, 0)
  return canvas
}
