/* A library with the functions of NVML that package nvml calls, for tests. */
#include <stdlib.h>
#include <string.h>

static unsigned long long millijoules = 5000;

int nvmlInit_v2(void) { return 0; }

int nvmlDeviceGetHandleByPciBusId_v2(const char *address, void **device) {
	if (strcmp(address, "0000:01:00.0") && strcmp(address, "0000:02:00.0") && strcmp(address, "0000:03:00.0"))
		return 6;
	*device = (void *)(long)(address[6] - '0');
	return 0;
}

int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *energy) {
	if ((long)device == 2)
		return 3;
	if ((long)device == 3 && millijoules > 5000)
		abort();
	*energy = millijoules;
	millijoules += 1500;
	return 0;
}

const char *nvmlErrorString(int code) { return code == 3 ? "Not Supported" : "Not Found"; }
