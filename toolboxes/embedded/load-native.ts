/** Loads the prebuilt CPU binary of node-llama-cpp: directly if the layout of the pinned version is found, otherwise with `getLlama`. */
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Native } from './native.ts';

/** The prebuilt packages of node-llama-cpp by platform. */
const PREBUILT: Readonly<Record<string, { readonly name: string; readonly bins: string }>> = {
  'linux-x64': { name: '@node-llama-cpp/linux-x64', bins: 'linux-x64' },
  'linux-arm64': { name: '@node-llama-cpp/linux-arm64', bins: 'linux-arm64' },
};

export interface ChatTemplate {
  render(variables: Readonly<Record<string, unknown>>): string;
}

/** `modulesDir` contains the `node_modules` that are locked in the `package-lock.json` of this folder. */
export async function loadNative(modulesDir: string, threads: number): Promise<Native> {
  return (await loadDirectly(modulesDir, threads)) ?? loadWithGetLlama(modulesDir, threads);
}

export async function loadTemplate(modulesDir: string, source: string): Promise<ChatTemplate> {
  const jinja = await importFrom<{ Template: new (source: string) => ChatTemplate }>(modulesDir, '@huggingface/jinja');
  return new jinja.Template(source);
}

/**
 * `getLlama` imports the whole library and starts a second process to test the binary, which takes a quarter of a second. Without that
 * test, an unsuitable binary crashes this process; the service then reports its exit code and the end of its log.
 */
async function loadDirectly(modulesDir: string, threads: number): Promise<Native | undefined> {
  const prebuilt = PREBUILT[`${process.platform}-${process.arch}`];
  if (prebuilt === undefined) return undefined;
  const bins = path.join(modulesDir, 'node_modules', prebuilt.name, 'bins', prebuilt.bins);
  const bindingPath = path.join(bins, 'llama-addon.node');
  const entry = path.join(modulesDir, 'node_modules', 'node-llama-cpp', 'dist', 'bindings', 'Llama.js');
  const metadata = await readFile(path.join(bins, '_nlcBuildMetadata.json'), 'utf8').catch(() => undefined);
  if (metadata === undefined) return undefined;
  const module: { Llama?: { _create?: (options: object) => Promise<Native> } } = await import(pathToFileURL(entry).href).catch(() => ({}));
  const buildMetadata: unknown = JSON.parse(metadata);
  return module.Llama?._create?.({
    bindings: createRequire(import.meta.url)(bindingPath),
    bindingPath,
    buildType: 'prebuilt',
    buildMetadata,
    logLevel: 'warn',
    maxThreads: threads,
    vramPadding: 0,
    ramPadding: 0,
    skipLlamaInit: false,
    debug: false,
  });
}

async function loadWithGetLlama(modulesDir: string, threads: number): Promise<Native> {
  const library = await importFrom<{ getLlama: (options: object) => Promise<Native> }>(modulesDir, 'node-llama-cpp');
  return library.getLlama({
    gpu: process.platform === 'darwin' ? 'auto' : false,
    build: 'never',
    skipDownload: true,
    progressLogs: false,
    maxThreads: threads,
  });
}

async function importFrom<Module>(modulesDir: string, name: string): Promise<Module> {
  const file = createRequire(path.join(modulesDir, 'package.json')).resolve(name);
  return import(pathToFileURL(file).href);
}
