/** Loads the generators of the demo models from `toolboxes/demo`, which nothing in `src` imports statically. */

interface DemoToolbox {
  /** The same bytes on every machine. `file`: relative to the root of a store. Throws if it is unknown. */
  encodeDemoFile(file: string): Uint8Array;
  writeDemoFile(file: string, target: string): Promise<unknown>;
  /** Does not touch files that have the right content. */
  writeDemoModels(root: string): Promise<unknown>;
  writeDemoSpeech(root: string): Promise<void>;
}

const GENERATORS = '../../toolboxes/demo/demo-models.ts';

export const loadDemoToolbox = async (): Promise<DemoToolbox> => await import(GENERATORS);
