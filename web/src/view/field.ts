// Pieces of ground: from a square of heights to a mesh with shade from slope, height and hollows, and skirts that hide the seam to what is beside it.
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

// A patch is made of squares, `parts` each way, that can be left out; each has a skirt of its own. Corners of the skirts stand behind those of the
// grid, square after square: south, north, west, east.
const corners = (cells: number, parts: number): number => (cells + 1) * (cells + 1) + 4 * parts * (cells + parts)

// The corner of the grid that stands above corner k of the skirts.
function rimOf(k: number, cells: number, parts: number): number {
  const n = cells + 1
  const c = cells / parts
  const i = k % (c + 1)
  const side = Math.floor(k / (c + 1)) % 4
  const part = Math.floor(k / (4 * (c + 1)))
  const first = Math.floor(part / parts) * c * n + (part % parts) * c
  return first + ([i, c * n + i, i * n, i * n + c][side] as number)
}

// Triangles of those squares of a patch whose bits are set, every `stride`-th of its lines. Between two of them there is no skirt.
export function partIndex(cells: number, stride: number, parts: number, bits: number): BufferAttribute {
  const n = cells + 1
  const c = cells / parts
  const step = Math.min(stride, c)
  const list: number[] = []
  const quad = (a: number, b: number, c: number, d: number): void => void list.push(a, b, c, a, c, d)
  const isOn = (u: number, v: number): boolean => u >= 0 && v >= 0 && u < parts && v < parts && (bits & (1 << (v * parts + u))) !== 0
  for (let v = 0; v < parts; v++)
    for (let u = 0; u < parts; u++) {
      if (!isOn(u, v)) continue
      for (let j = v * c; j < (v + 1) * c; j += step)
        for (let i = u * c; i < (u + 1) * c; i += step) {
          const a = j * n + i
          const b = a + step * n
          quad(a, a + step, b + step, b)
        }
      const beside = [isOn(u, v - 1), isOn(u, v + 1), isOn(u - 1, v), isOn(u + 1, v)]
      beside.forEach((isOther, side) => {
        if (isOther) return
        const first = ((v * parts + u) * 4 + side) * (c + 1)
        const rim = (i: number): number => rimOf(first + i, cells, parts)
        const skirt = n * n + first
        // Once for each side: what is seen from behind would be lit from below.
        for (let i = 0; i < c; i += step) {
          quad(rim(i), rim(i + step), skirt + i + step, skirt + i)
          quad(rim(i + step), rim(i), skirt + i, skirt + i + step)
        }
      })
    }
  return new BufferAttribute(new Uint16Array(list), 1)
}

// Those of all of a patch of one square; shared.
const indices = new Map<string, BufferAttribute>()
export function patchIndex(cells: number, stride = 1): BufferAttribute {
  const key = `${cells}/${stride}`
  let index = indices.get(key)
  if (!index) indices.set(key, (index = partIndex(cells, stride, 1, 1)))
  return index
}

// Writes the colour of corner k as the screen has it: of a surface of that colour and normal.
export type Bake = (to: Uint8Array, k: number, r: number, g: number, b: number, nx: number, ny: number, nz: number) => void

export interface PatchOptions {
  flare?: number // m that the skirt goes outwards
  tint?: (sample: number) => number // makes a corner darker or lighter, by its sample
  parts?: number // squares each way; 1 when nothing is said
  hasPhoto?: boolean
  bake?: Bake | undefined // light is worked out here, once, and there are no normals
}

// A new geometry, or another patch of the same size and place put into one that was.
export function patchGeometry(patch: Patch, shade: Shade, skirt: number, options: PatchOptions = {}, into?: BufferGeometry): BufferGeometry {
  const { flare = 0, tint, parts = 1, hasPhoto = false, bake } = options
  const { z, side, cells, x, y, dx: cell } = patch
  const n = cells + 1
  const border = (side - n) / 2
  const geometry = into ?? emptyPatch(cells, parts, hasPhoto ? pictureCorners(patch, border, parts) : null, bake !== undefined)
  const position = geometry.getAttribute('position').array as Float32Array
  const color = geometry.getAttribute('color').array as Float32Array | Uint8Array
  const normal = bake ? null : (geometry.getAttribute('normal').array as Float32Array)
  const span = Math.max(shade.high - shade.low, 1e-6)
  // Hollows are darker, crests lighter, by how far a point stands off the mean of its surroundings.
  const r = Math.min(Math.max(1, Math.round(0.3 / cell)), border)
  const { r: red, g: green, b: blue } = shade.color
  let k = 0
  for (let j = border; j < border + n; j++) {
    const at = y[j] as number
    const way = (y[j + 1] as number) - (y[j - 1] as number)
    const perY = way === 0 ? 0 : 1 / way
    for (let i = border; i < border + n; i++, k++) {
      const s = j * side + i
      const h = z[s] as number
      const across = (x[i + 1] as number) - (x[i - 1] as number)
      const gx = across === 0 ? 0 : ((z[s + 1] as number) - (z[s - 1] as number)) / across
      const gy = ((z[s + side] as number) - (z[s - side] as number)) * perY
      const up = 1 / Math.sqrt(gx * gx + gy * gy + 1)
      put(position, k, x[i] as number, at, h)
      if (normal) put(normal, k, -gx * up, -gy * up, up)
      let light = 1
      if (!shade.isPlain) {
        const around = (z[s - r] as number) + (z[s + r] as number) + (z[s - r * side] as number) + (z[s + r * side] as number)
        const crest = Math.min(Math.max((h - around / 4) / (0.12 * r * cell), -1), 1)
        const grain = Math.sin((x[i] as number) * 129.898 + at * 782.33) * 0.012
        light = 0.9 + 0.16 * crest + 0.16 * ((h - shade.low) / span) - 0.5 * (1 - up) + grain
        light = Math.min(Math.max(light, 0.4), 1.3)
      }
      if (tint) light *= tint(s)
      if (bake) bake(color as Uint8Array, k, red * light, green * light, blue * light, -gx * up, -gy * up, up)
      else put(color, k, red * light, green * light, blue * light)
    }
  }
  for (let m = 0; k < corners(cells, parts); m++, k++) {
    const rim = rimOf(m, cells, parts)
    const way = Math.floor(m / (cells / parts + 1)) % 4
    const axis = way < 2 ? 1 : 0
    copy(position, k, rim)
    copy(color, k, rim)
    if (normal) copy(normal, k, rim)
    position[3 * k + axis] = (position[3 * k + axis] as number) + (way % 2 === 0 ? -flare : flare)
    position[3 * k + 2] = (position[3 * k + 2] as number) - skirt
  }
  for (const name of ['position', 'color', 'normal']) if (geometry.hasAttribute(name)) geometry.getAttribute(name).needsUpdate = true
  return geometry
}

function emptyPatch(cells: number, parts: number, uv: Float32Array | null, isBaked: boolean): BufferGeometry {
  const total = corners(cells, parts)
  const geometry = new BufferGeometry()
  geometry.setAttribute('position', new BufferAttribute(new Float32Array(total * 3), 3))
  const color = isBaked ? new Uint8Array(total * 3) : new Float32Array(total * 3)
  geometry.setAttribute('color', new BufferAttribute(color, 3, isBaked))
  if (!isBaked) geometry.setAttribute('normal', new BufferAttribute(new Float32Array(total * 3), 3))
  if (uv) geometry.setAttribute('uv', new BufferAttribute(uv, 2))
  return geometry
}

function put(to: Float32Array | Uint8Array, k: number, a: number, b: number, c: number): void {
  to[3 * k] = a
  to[3 * k + 1] = b
  to[3 * k + 2] = c
}

function copy(to: Float32Array | Uint8Array, k: number, from: number): void {
  put(to, k, to[3 * from] as number, to[3 * from + 1] as number, to[3 * from + 2] as number)
}

// Where each corner lies on a picture of the whole square, also when the ground ends within it.
function pictureCorners({ cells, dx, dy, x, y }: Patch, border: number, parts: number): Float32Array {
  const n = cells + 1
  const at = new Float32Array(corners(cells, parts) * 2)
  let k = 0
  for (let j = 0; j < n; j++)
    for (let i = 0; i < n; i++, k += 2) {
      at[k] = ((x[border + i] as number) - (x[border] as number)) / (cells * dx)
      at[k + 1] = ((y[border + j] as number) - (y[border] as number)) / (cells * dy)
    }
  for (let m = 0; k < at.length; m++, k += 2) {
    const rim = 2 * rimOf(m, cells, parts)
    at.copyWithin(k, rim, rim + 2)
  }
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
