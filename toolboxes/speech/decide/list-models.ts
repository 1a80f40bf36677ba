/** The list of `GET /v1/models`: the model, and what it can do. Pure. */
import type { ModelFacts } from './describe-model.ts';
import type { Flags } from './parse-flags.ts';

/** `created`: seconds since 1970. */
export function describeForModels(facts: ModelFacts, { aliases, task }: Flags, created: number): object {
  const { family, sampleRate, languages, translation, timestamps, voices, clones } = facts;
  const abilities =
    task === 'stt'
      ? { languages, translation, timestamps, sample_rate: sampleRate }
      : { languages, voices: voices.map(({ name }) => name), clones, sample_rate: sampleRate };
  const data = aliases.map((id) => ({ id, object: 'model', created, owned_by: 'svc', task, family, ...abilities }));
  return { object: 'list', data };
}
