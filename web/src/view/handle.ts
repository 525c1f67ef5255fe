// A handle to take hold of an object: arrows along the axes and a ring for the heading. What is moved is a ghost; the object goes when it is let go.
import { Box3, Box3Helper, Color, Object3D, Vector3, type Camera, type Scene } from 'three'
import { TransformControls } from 'three/addons/controls/TransformControls.js'
import type { Quat, Vec3 } from '../app'
import { ACCENT } from './surfaces'

export class Handle {
  readonly ghost = new Object3D()
  isHeld = false
  private readonly parts: TransformControls[]
  private box: Box3Helper | null = null
  private moved: ((p: Vec3, q: Quat) => void) | null = null

  constructor(
    private readonly scene: Scene,
    camera: Camera,
    canvas: HTMLCanvasElement,
    redraw: () => void,
    held: (isHeld: boolean) => void,
  ) {
    const shift = new TransformControls(camera, canvas)
    shift.setMode('translate')
    shift.setSize(0.85)
    const turn = new TransformControls(camera, canvas)
    turn.setMode('rotate')
    turn.setSize(0.6)
    turn.showX = turn.showY = turn.showE = false
    this.parts = [shift, turn]
    for (const part of this.parts) {
      part.enabled = false
      part.addEventListener('change', redraw)
      part.addEventListener('dragging-changed', (event) => {
        this.isHeld = event.value === true
        for (const other of this.parts) if (other !== part) other.enabled = !this.isHeld
        held(this.isHeld)
        if (!this.isHeld) this.letGo()
      })
    }
  }

  show(object: Object3D, box: Box3, moved: (p: Vec3, q: Quat) => void): void {
    this.hide()
    this.moved = moved
    object.updateWorldMatrix(true, false)
    object.matrixWorld.decompose(this.ghost.position, this.ghost.quaternion, new Vector3())
    if (!box.isEmpty()) {
      this.box = new Box3Helper(box, new Color(ACCENT))
      this.box.raycast = () => undefined
      this.ghost.add(this.box)
    }
    this.scene.add(this.ghost)
    for (const part of this.parts) {
      part.attach(this.ghost)
      part.enabled = true
      this.scene.add(part.getHelper())
    }
  }

  get isShown(): boolean {
    return this.moved !== null
  }

  hide(): void {
    this.moved = null
    for (const part of this.parts) {
      part.detach()
      part.enabled = false
      part.getHelper().removeFromParent()
    }
    this.box?.removeFromParent()
    this.box?.dispose()
    this.box = null
    this.ghost.removeFromParent()
  }

  // Goes along with its object while nobody holds it.
  follow(object: Object3D): void {
    if (this.isHeld || !this.moved) return
    object.matrixWorld.decompose(this.ghost.position, this.ghost.quaternion, new Vector3())
  }

  private letGo(): void {
    const { position: p, quaternion: q } = this.ghost
    this.moved?.([p.x, p.y, p.z], [q.w, q.x, q.y, q.z])
  }
}
