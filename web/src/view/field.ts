// Pieces of ground: from a square of heights to a mesh with shade from slope, height and hollows, and a skirt that hides the seam to pieces beside it.
import { BufferAttribute, BufferGeometry, Color, DataTexture, LinearFilter, LinearMipmapLinearFilter, SRGBColorSpace, type Texture } from 'three'

// A square of heights, `side` samples each way, x fastest. The mesh has the middle `cells` + 1 of them; those around it are for slopes alone.
export interface Patch {
  z: Float32Array
  side: number
  cells: number
  dx: number // m, of a cell that is not cut off by an edge
  dy: number
  x: Float32Array // of every column of samples; two may be at one place, beyond an edge
  y: Float32Array
}
export interface Shade {
  color: Color
  low: number // m, between which the ground lies
  high: number
  isPlain: boolean // one colour: a photograph says the rest
}

const indices = new Map<string, BufferAttribute>()

// Triangles of a patch of so many cells, every `stride`-th of its lines; shared by all of them. Corners of the skirt stand behind those of the grid:
// south, north, west, east.
export function patchIndex(cells: number, stride = 1): BufferAttribute {
  const key = `${cells}/${stride}`
  let index = indices.get(key)
  if (index) return index
  const n = cells + 1
  const list: number[] = []
  const quad = (a: number, b: number, c: number, d: number): void => void list.push(a, b, c, a, c, d)
  for (let j = 0; j < cells; j += stride)
    for (let i = 0; i < cells; i += stride) {
      const a = j * n + i
      const b = a + stride * n
      quad(a, a + stride, b + stride, b)
    }
  const rims = [(i: number): number => i, (i: number): number => cells * n + i, (i: number): number => i * n, (i: number): number => i * n + cells]
  rims.forEach((rim, side) => {
    const skirt = n * n + side * n
    // Once for each side: what is seen from behind would be lit from below.
    for (let i = 0; i < cells; i += stride) {
      quad(rim(i), rim(i + stride), skirt + i + stride, skirt + i)
      quad(rim(i + stride), rim(i), skirt + i, skirt + i + stride)
    }
  })
  index = new BufferAttribute(new Uint16Array(list), 1)
  indices.set(key, index)
  return index
}

// The rim's corner that stands above corner k of the skirt.
function rimOf(k: number, cells: number): number {
  const n = cells + 1
  const i = k % n
  return [i, cells * n + i, i * n, i * n + cells][Math.floor(k / n)] as number
}

export interface PatchOptions {
  flare?: number // m that the skirt goes outwards
  tint?: (sample: number) => number // makes a corner darker or lighter, by its sample
  hasPhoto?: boolean
}

export function patchGeometry(patch: Patch, shade: Shade, skirt: number, options: PatchOptions = {}): BufferGeometry {
  const { flare = 0, tint, hasPhoto = false } = options
  const { z, side, cells, x, y, dx: cell } = patch
  const n = cells + 1
  const border = (side - n) / 2
  const total = n * n + 4 * n
  const position = new Float32Array(total * 3)
  const normal = new Float32Array(total * 3)
  const color = new Float32Array(total * 3)
  const span = Math.max(shade.high - shade.low, 1e-6)
  // Hollows are darker, crests lighter, by how far a point stands off the mean of its surroundings.
  const r = Math.min(Math.max(1, Math.round(0.3 / cell)), border)
  const slope = (a: number, b: number, at: Float32Array, i: number): number => {
    const way = (at[i + 1] as number) - (at[i - 1] as number)
    return way === 0 ? 0 : ((z[b] as number) - (z[a] as number)) / way
  }
  const { r: red, g: green, b: blue } = shade.color
  let k = 0
  for (let j = border; j < border + n; j++)
    for (let i = border; i < border + n; i++, k++) {
      const s = j * side + i
      const h = z[s] as number
      const gx = slope(s - 1, s + 1, x, i)
      const gy = slope(s - side, s + side, y, j)
      const length = Math.sqrt(gx * gx + gy * gy + 1)
      put(position, k, x[i] as number, y[j] as number, h)
      put(normal, k, -gx / length, -gy / length, 1 / length)
      let light = 1
      if (!shade.isPlain) {
        const around = (z[s - r] as number) + (z[s + r] as number) + (z[s - r * side] as number) + (z[s + r * side] as number)
        const crest = Math.min(Math.max((h - around / 4) / (0.12 * r * cell), -1), 1)
        const grain = Math.sin((x[i] as number) * 129.898 + (y[j] as number) * 782.33) * 0.012
        light = 0.9 + 0.16 * crest + 0.16 * ((h - shade.low) / span) - 0.5 * (1 - 1 / length) + grain
        light = Math.min(Math.max(light, 0.4), 1.3)
      }
      if (tint) light *= tint(s)
      put(color, k, red * light, green * light, blue * light)
    }
  for (let m = 0; m < 4 * n; m++, k++) {
    const rim = 3 * rimOf(m, cells)
    position.copyWithin(3 * k, rim, rim + 3)
    normal.copyWithin(3 * k, rim, rim + 3)
    color.copyWithin(3 * k, rim, rim + 3)
    const way = Math.floor(m / n)
    const axis = way < 2 ? 1 : 0
    position[3 * k + axis] = (position[3 * k + axis] as number) + (way % 2 === 0 ? -flare : flare)
    position[3 * k + 2] = (position[3 * k + 2] as number) - skirt
  }
  const geometry = new BufferGeometry()
  geometry.setAttribute('position', new BufferAttribute(position, 3))
  geometry.setAttribute('normal', new BufferAttribute(normal, 3))
  geometry.setAttribute('color', new BufferAttribute(color, 3))
  if (hasPhoto) geometry.setAttribute('uv', new BufferAttribute(pictureCorners(patch, border), 2))
  geometry.setIndex(patchIndex(cells))
  return geometry
}

function put(to: Float32Array, k: number, a: number, b: number, c: number): void {
  to[3 * k] = a
  to[3 * k + 1] = b
  to[3 * k + 2] = c
}

// Where each corner lies on a picture of the whole square, also when the ground ends within it.
function pictureCorners({ cells, dx, dy, x, y }: Patch, border: number): Float32Array {
  const n = cells + 1
  const at = new Float32Array((n * n + 4 * n) * 2)
  let k = 0
  for (let j = 0; j < n; j++)
    for (let i = 0; i < n; i++, k += 2) {
      at[k] = ((x[border + i] as number) - (x[border] as number)) / (cells * dx)
      at[k + 1] = ((y[border + j] as number) - (y[border] as number)) / (cells * dy)
    }
  for (let m = 0; m < 4 * n; m++, k += 2) at.copyWithin(k, 2 * rimOf(m, cells), 2 * rimOf(m, cells) + 2)
  return at
}

// What a GET answers; an error when it is not so many bytes.
export async function getBytes(path: string, length: number): Promise<ArrayBuffer> {
  const answer = await fetch(path)
  const bytes = answer.ok ? await answer.arrayBuffer() : null
  if (bytes?.byteLength !== length) throw new Error(`${path}: ${answer.status}`)
  return bytes
}

export function photoTexture(bytes: ArrayBuffer, side: number): Texture {
  const texture = new DataTexture(new Uint8Array(bytes), side, side)
  texture.colorSpace = SRGBColorSpace
  texture.magFilter = LinearFilter
  texture.minFilter = LinearMipmapLinearFilter
  texture.generateMipmaps = true
  texture.anisotropy = 4
  texture.needsUpdate = true
  return texture
}
