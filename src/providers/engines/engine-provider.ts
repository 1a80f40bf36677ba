/** A provider that is declared in a file: everything that the service knows about it is in its definition. */
import path from 'node:path';
import { isTable } from '../../schema/words/key-case.ts';
import { ok } from '../../schema/words/failure.ts';
import type { EngineDefinition } from '../../schema/slot/engine-document.ts';
import { devicesOf, rankBackends } from '../decide/rank-backends.ts';
import { installedProgram } from '../host-program.ts';
import type { HostProgram, InferPlan, ProgramHost, Provider, ServedSlot } from '../provider.ts';
import { begin, collect, formBody, nextBytes, open, write } from '../translation-steps.ts';
import type { Translate, TranslatableBody, UpstreamRequest } from '../translation.ts';
import { acceptsModel, FORMAT_OF } from './engine-formats.ts';
import { engineHealth } from './engine-health.ts';
import { engineAbilities } from './engine-sleep.ts';
import * as command from './decide/engine-command.ts';

/** Chats contain images. */
const MAX_JSON_BYTES = 64 * 2 ** 20;

export function engineProvider(engine: EngineDefinition): Provider {
  const { name, backends, serves, models, image, port, health, safeFlags } = engine;
  const [defaultBackend = 'cpu'] = backends;
  return {
    kind: name,
    engine,
    program: engine.command[0] ?? '',
    ...(image === undefined ? {} : { images: image }),
    containerPort: port,
    readyPath: health.path,
    safeFlags: new Set(safeFlags),
    models: FORMAT_OF[models.format],
    accepts: (model) => acceptsModel(models.format, model),
    ...(models.format === 'name' ? { fetchesModels: true } : {}),
    openProgram: (host) => openEngine(engine, host),
    rankBackends: (hardware) => rankBackends(name, hardware, { backends, defaultBackend }),
    devices: devicesOf,
    buildEnv: (slot) => command.engineEnvironment(engine, slot),
    startCmd: (slot) => command.engineCommand(engine, slot),
    estimateMemory: (_name, spec, model) => command.engineMemory(engine, spec, model.sizeBytes),
    objection: (_name, spec) => command.engineObjection(engine, spec),
    capabilities: () => serves,
    ...engineHealth(engine),
    ...engineAbilities(engine),
    infer: ({ capability, path: asked }, capabilities, slot) => {
      const to = capabilities.includes(capability) ? command.serverPath(engine, asked) : undefined;
      return to === undefined ? refusal(engine, asked) : planFor(engine, to, slot);
    },
  };
}

const refusal = ({ name }: EngineDefinition, asked: string): InferPlan => ({
  kind: 'refuse',
  message: `The engine "${name}" does not serve "${asked}"; send the request to another slot, or add the path to "paths" of the engine`,
});

function planFor(engine: EngineDefinition, to: string, slot: ServedSlot | undefined): InferPlan {
  const model = slot === undefined ? undefined : command.requestedName(engine, slot.spec);
  return model === undefined
    ? { kind: 'forward', path: to }
    : { kind: 'translate', run: renameModel(to, model), maxJsonBytes: MAX_JSON_BYTES };
}

/** Sends the request with another name of the model, and the response as it comes. */
const renameModel = (to: string, model: string): Translate =>
  function* run({ body, boundary }) {
    const head = yield* open({ method: 'POST', path: to, ...renamed(body, boundary, model) });
    if (head.status !== 200) return { kind: 'upstream-error', answer: yield* collect(head) };
    yield* begin({ status: 200, contentType: head.headers.get('content-type') ?? 'application/json' });
    for (let bytes = yield* nextBytes(); bytes !== undefined; bytes = yield* nextBytes()) yield* write(bytes);
    return { kind: 'written' };
  };

function renamed(body: TranslatableBody, boundary: string, model: string): Pick<UpstreamRequest, 'headers' | 'body'> {
  if (body.kind === 'json') {
    const value = isTable(body.value) ? { ...body.value, model } : body.value;
    return { headers: { 'content-type': 'application/json' }, body: JSON.stringify(value) };
  }
  const fields = [...body.fields.filter(({ name }) => name !== 'model'), { name: 'model', value: model }];
  const files = body.files.map((file) => ({ name: file.name, fileName: path.basename(file.fileName) || 'file', file }));
  return formBody(boundary, fields, files);
}

/** Nothing is installed. */
function openEngine({ name, command: [program = ''] }: EngineDefinition, { env }: ProgramHost): HostProgram {
  const { find, describe } = installedProgram(program, env, `install the engine "${name}", or correct "command" in "engines/${name}.toml"`);
  return {
    describe,
    async resolve() {
      const found = await find();
      return found.ok ? ok([found.value]) : found;
    },
  };
}
