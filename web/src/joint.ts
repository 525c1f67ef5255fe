// What a number means that somebody gives a joint with one coordinate, in the tree and on the slider alike.
//
// A drive brings its joint back to its target: of a driven joint the target is set, and the joint goes there as fast as its motor can. While time is
// paused nothing goes anywhere: the joint is put there at once, and the target with it, so that it stays when time goes on. A joint without a drive is
// put there in any case.
import type { App, World } from './app'
import { quote, write } from './ui'

export type Wanted = 'position' | 'velocity'

// The drive that pulls towards a target of this kind; -1: none. One without kp has a velocity as its target.
function pullingDrive(world: World, joint: number, wanted: Wanted): number {
  return world.drives.findIndex((d) => d.joint === joint && (wanted === 'position' ? d.kp > 0 : d.kp === 0 && d.kd > 0))
}

// What the slider of a joint sets.
export function slides(world: World, joint: number): Wanted {
  return pullingDrive(world, joint, 'velocity') >= 0 ? 'velocity' : 'position'
}

export function label(world: World, joint: number, wanted: Wanted): string {
  return pullingDrive(world, joint, wanted) >= 0 ? `target ${wanted}` : wanted
}

export function hint(world: World, joint: number, wanted: Wanted): string {
  return pullingDrive(world, joint, wanted) >= 0
    ? `sets the target ${wanted} of the drive; while time is paused the joint has it at once`
    : `sets the ${wanted} of the joint at once`
}

// The commands, in their order.
export function giveJoint(app: App, world: World, index: number, wanted: Wanted, value: number): string[] {
  const joint = world.joints[index]
  const drive = `drive ${quote(joint.name)} ${write(value)}`
  const set =
    wanted === 'position'
      ? `joint ${quote(joint.name)} ${write(value)}`
      : `joint ${quote(joint.name)} ${write(app.value(`${joint.name}.q`) ?? 0)} ${write(value)}`
  if (pullingDrive(world, index, wanted) < 0) return [set]
  return app.status?.paused ? [set, drive] : [drive]
}
