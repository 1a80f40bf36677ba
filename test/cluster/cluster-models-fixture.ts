/** The model stores of several replicas of the gateway, over one fake API server. */
import { createClusterModelStore, type ClusterModelStore } from '../../src/cluster/models/cluster-model-store.ts';
import { createModelRecords, createRecordReflector } from '../../src/cluster/models/model-records.ts';
import type { Catalogue } from '../../src/models/catalogue/catalogue.ts';
import { readHubAccess } from '../../src/models/hub/hub-access.ts';
import { createModelStore } from '../../src/models/store.ts';
import { MODEL_FORMATS } from '../../src/providers/registry.ts';
import { eventually } from '../support/eventually.ts';
import { startFakeKubeApi, type FakeKubeApi } from '../support/kube/fake-kube-api.ts';
import { connectToFake } from '../support/kube/fake-kube-client.ts';

export interface ReplicaOptions {
  readonly root: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly catalogue?: Catalogue;
  readonly acceptedLicenses?: readonly string[];
  readonly fitsBytes?: number;
  /** Do not wait for the first list. */
  readonly isEarly?: true;
}

export interface ClusterModelsWorld {
  readonly fake: FakeKubeApi;
  replica(options: ReplicaOptions): Promise<ClusterModelStore>;
  close(): Promise<void>;
}

export async function createClusterModelsWorld(): Promise<ClusterModelsWorld> {
  const fake = await startFakeKubeApi();
  const ends = new AbortController();
  return {
    fake,
    async replica({ root, env = {}, catalogue, acceptedLicenses = [], fitsBytes, isEarly }) {
      const api = await connectToFake(fake);
      const copy = createRecordReflector({ api });
      const records = createModelRecords({ api, copy, root, acceptedLicenses });
      if (isEarly !== true) {
        copy.start(ends.signal);
        await eventually('the records are known', () => records.isKnown());
      }
      const own = catalogue === undefined ? {} : { catalogue };
      const store = createModelStore({ root, formats: MODEL_FORMATS, ...own });
      return createClusterModelStore({ store, records, hub: readHubAccess({ HF_HOME: root, ...env }), fitsBytes, ...own });
    },
    async close() {
      ends.abort();
      await fake.close();
    },
  };
}
