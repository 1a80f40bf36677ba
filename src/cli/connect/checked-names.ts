/** Names that users write, checked before they become a part of a path of the API. */
import { modelIdProblem, profileNameProblem, slotNameProblem } from '../../schema/words/name-rules.ts';
import { usageFailure } from '../output/exit-codes.ts';

/** Returns the name. Throws a `CliFailure` if it cannot be the name of a slot. */
export function checkedSlotName(name: string): string {
  const problem = slotNameProblem(name);
  if (problem !== undefined) throw usageFailure(`${problem}: "${name}" is not a slot name`);
  return name;
}

/** Returns the name. Throws a `CliFailure` if it cannot be the name of a profile. */
export function checkedProfileName(name: string): string {
  const problem = profileNameProblem(name);
  if (problem !== undefined) throw usageFailure(`${problem}: "${name}" is not a profile name`);
  return name;
}

/** Returns the id. Throws a `CliFailure` if it cannot be the id of a model. */
export function checkedModelId(id: string): string {
  const problem = modelIdProblem(id);
  if (problem !== undefined) throw usageFailure(`${problem}: "${id}" is not a model id`);
  return id;
}
