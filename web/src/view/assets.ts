// Meshes and ground that the world's shapes name, fetched once and kept over edits: after an edit every address is new, what it leads to is not.
import { Box3, DoubleSide, Group, Mesh, MeshLambertMaterial, MeshStandardMaterial, TextureLoader, type Material } from 'three'
import { GLTFLoader } from 'three/addons/loaders/GLTFLoader.js'
import type { ShapeInfo, World } from '../app'
import { plainSurface } from './plain'
import { Ground, type GroundLook } from './ground'
import { regionsKey } from './regions'

// What makes a shape the same one after an edit: its link, its place among that link's shapes, its measures.
export function assetKey(world: World, index: number): string {
  const shape = world.shapes[index] as ShapeInfo
  const link = shape.link < 0 ? '' : (world.links[shape.link]?.name ?? '')
  let place = 0
  for (let i = 0; i < index; i++) {
    const other = world.shapes[i] as ShapeInfo
    if (other.link === shape.link && other.kind === shape.kind) place++
  }
  const box = shape.box ? [...shape.box.min, ...shape.box.max].join(' ') : ''
  return [shape.kind, link, shape.name ?? '', place, shape.size.join(' '), shape.nx ?? 0, shape.ny ?? 0, box].join('|')
}

export class Assets {
  private readonly loader = new GLTFLoader()
  private readonly meshes = new Map<string, Group>()
  private readonly grounds = new Map<string, Ground>()

  constructor(readonly isPlain: boolean) {
    // Textures inside a file are made to images by the browser alone: no request leaves the page for them.
    this.loader.register((parser) => {
      parser.textureLoader = new TextureLoader(parser.options.manager)
      return { name: 'textures' }
    })
  }

  // Another run may have other files under the same names.
  clear(): void {
    this.meshes.clear()
    for (const ground of this.grounds.values()) ground.dispose()
    this.grounds.clear()
  }

  // The ground of a height field, with the tiles that it has; null when there are none. It hangs where it was last hung.
  ground(world: World, index: number, makeLook: () => GroundLook, changed: () => void): Ground | null {
    const shape = world.shapes[index] as ShapeInfo
    if (!shape.ground) return null
    const { low, high } = shape.ground
    const key = [assetKey(world, index), low, high, shape.p.join(' '), shape.q.join(' '), shape.rgba?.join(' ') ?? '', regionsKey(world, index)].join('|')
    let ground = this.grounds.get(key)
    if (!ground) this.grounds.set(key, (ground = new Ground(shape, makeLook(), changed)))
    ground.tiles = shape.ground.tiles
    ground.object.userData.shape = index
    return ground
  }

  // Calls `ready` with a mesh, a copy that shares geometry and materials, at once when it is known; not at all when there is none.
  mesh(world: World, index: number, ready: (mesh: Group, box: Box3) => void): void {
    const shape = world.shapes[index] as ShapeInfo
    if (!shape.asset) return
    const key = assetKey(world, index)
    const known = this.meshes.get(key)
    if (known) {
      ready(known.clone(), new Box3().setFromObject(known))
      return
    }
    void this.loader
      .loadAsync(shape.asset)
      .then((file) => {
        const group = file.scene
        group.traverse((node) => {
          if (!(node instanceof Mesh)) return
          node.material = this.adapt(node.material as Material, shape)
          const geometry = node.geometry
          if (!geometry.getAttribute('normal')) geometry.computeVertexNormals()
          geometry.userData.isShared = true
        })
        this.meshes.set(key, group)
        ready(group.clone(), new Box3().setFromObject(group))
      })
      .catch(() => undefined)
  }

  // Materials as our own surfaces: software gets cheap ones, and a colour that the scene gives shows where the file has none.
  private adapt(material: Material, shape: ShapeInfo): Material {
    if (!(material instanceof MeshStandardMaterial)) return material
    const isPlain = material.map === null && material.name === '' && material.color.getHex() === 0xffffff
    if (isPlain && shape.rgba) material.color.setRGB(shape.rgba[0] ?? 1, shape.rgba[1] ?? 1, shape.rgba[2] ?? 1, 'srgb')
    else if (isPlain) material.color.set(0xb8bcc2)
    if (!this.isPlain) {
      // glTF's default is a full metal, which is black without a room around it to mirror.
      material.metalness = Math.min(material.metalness, 0.3)
      material.roughness = Math.max(material.roughness, 0.5)
      return material
    }
    const { color, map, side, transparent, opacity, vertexColors } = material
    if (map === null) return plainSurface({ color: color.getHex(), opacity, vertexColors, isDoubleSided: side === DoubleSide })
    return new MeshLambertMaterial({ color, map, side, transparent, opacity, vertexColors })
  }
}
