/* Log densities and gradients for Python without the cost of ctypes: the extension module `ulam.runtime._calls`.
 *
 * `DensityCall.evaluate` does what nearly every call wants (an array of float64 comes in, a number and a new array go
 * out) and leaves all else to Python: arguments of other kinds, errors, what a program prints. The C runtime knows
 * nothing of this module; its functions come as addresses.
 */
#define PY_SSIZE_T_CLEAN
#if !defined(Py_GIL_DISABLED) && !defined(Py_LIMITED_API)
#define Py_LIMITED_API 0x030B0000
#endif
#include <Python.h>
#include <structmember.h>

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#include <numpy/arrayobject.h>
#include <stdlib.h>
#include <string.h>

#include "context.h"

typedef int32_t (*run_value)(ulam_context *, void *entry, void *bound, const double *theta, int32_t jacobian);
typedef int32_t (*run_gradient)(ulam_context *, void *entry, void *bound, const double *theta, double *gradient,
                                int32_t jacobian);

/* A `runtime.workspace.Workspace`, with its addresses at hand. */
typedef struct {
  PyObject *object;
  ulam_context *ctx;
  double *theta, *gradient;
} workspace;

/* Idle workspaces: as many as calls ran at once, up to this. */
enum { KEPT = 16 };

typedef struct {
  PyObject_HEAD
  PyObject *unit;
  void *run, *entry, *bound;
  npy_intp n;
  int with_gradient, keeps;
  workspace *idle[KEPT]; /* taken and given back by exchanging one of them with NULL */
} density_call;

static PyObject *name_take, *name_give, *name_end; /* methods of StanModel */

/* ------------------------------------------------------------ workspaces */

static void *address_of(PyObject *object, const char *name) {
  PyObject *value = PyObject_GetAttrString(object, name);
  if (value == NULL) return NULL;
  void *address = PyLong_AsVoidPtr(value);
  Py_DECREF(value);
  return address;
}

static void drop(workspace *space) {
  if (space == NULL) return;
  Py_XDECREF(space->object);
  free(space);
}

static workspace *take(density_call *call, PyObject *model) {
  for (int i = 0; i < KEPT; ++i) {
    if (__atomic_load_n(&call->idle[i], __ATOMIC_RELAXED) == NULL) continue;
    workspace *found = __atomic_exchange_n(&call->idle[i], NULL, __ATOMIC_ACQUIRE);
    if (found) return found;
  }
  workspace *made = calloc(1, sizeof *made);
  if (made == NULL) return (workspace *)PyErr_NoMemory();
  made->object = PyObject_CallMethodObjArgs(model, name_take, NULL);
  if (made->object) {
    made->ctx = address_of(made->object, "address");
    made->theta = address_of(made->object, "theta_address");
    made->gradient = address_of(made->object, "gradient_address");
  }
  if (!PyErr_Occurred()) return made;
  drop(made);
  return NULL;
}

static void give(density_call *call, PyObject *model, workspace *space) {
  for (int i = 0; call->keeps && i < KEPT; ++i) {
    workspace *expected = NULL;
    if (__atomic_compare_exchange_n(&call->idle[i], &expected, space, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) return;
  }
  PyObject *type, *value, *traceback; /* an error on its way is not to be lost */
  PyErr_Fetch(&type, &value, &traceback);
  Py_XDECREF(PyObject_CallMethodObjArgs(model, name_give, space->object, NULL));
  PyErr_Restore(type, value, traceback);
  drop(space);
}

/* ------------------------------------------------------------ evaluation */

/* Whether `object` is a vector of `n` numbers of float64 one after the other. */
static int is_plain(PyObject *object, npy_intp n, int flags) {
  if (!PyArray_CheckExact(object)) return 0;
  PyArrayObject *array = (PyArrayObject *)object;
  return PyArray_NDIM(array) == 1 && PyArray_DIM(array, 0) == n && PyArray_TYPE(array) == NPY_DOUBLE &&
         PyArray_CHKFLAGS(array, flags) && PyArray_ISNOTSWAPPED(array);
}

static PyObject *evaluate(PyObject *self, PyObject *const *arguments, Py_ssize_t count) {
  density_call *call = (density_call *)self;
  if (count != 4) {
    PyErr_SetString(PyExc_TypeError, "evaluate(model, theta, jacobian, out)");
    return NULL;
  }
  PyObject *model = arguments[0], *theta = arguments[1], *out = arguments[3];
  if (!is_plain(theta, call->n, NPY_ARRAY_CARRAY_RO)) Py_RETURN_NONE;
  if (out != Py_None && !is_plain(out, call->n, NPY_ARRAY_CARRAY)) Py_RETURN_NONE;
  const int jacobian = PyObject_IsTrue(arguments[2]);
  if (jacobian < 0) return NULL;
  workspace *space = take(call, model);
  if (space == NULL) return NULL;
  const size_t bytes = (size_t)call->n * sizeof(double);
  memcpy(space->theta, PyArray_DATA((PyArrayObject *)theta), bytes);
  int32_t status;
  Py_BEGIN_ALLOW_THREADS
  if (call->with_gradient)
    status = ((run_gradient)call->run)(space->ctx, call->entry, call->bound, space->theta, space->gradient, jacobian);
  else
    status = ((run_value)call->run)(space->ctx, call->entry, call->bound, space->theta, jacobian);
  Py_END_ALLOW_THREADS
  PyObject *result = NULL;
  if (status != ULAM_OK || space->ctx->output_length != 0) { /* Python shows what was printed, and raises */
    PyObject *number = PyLong_FromLong(status);
    PyObject *ended = number == NULL ? NULL
                                     : PyObject_CallMethodObjArgs(model, name_end, call->unit, space->object, number,
                                                                  arguments[2], NULL);
    Py_XDECREF(number);
    if (ended == NULL) goto end;
    Py_DECREF(ended);
  }
  if (!call->with_gradient) {
    result = PyFloat_FromDouble(space->ctx->value);
    goto end;
  }
  PyObject *gradient = out;
  if (out == Py_None)
    gradient = PyArray_SimpleNew(1, &call->n, NPY_DOUBLE);
  else
    Py_INCREF(out);
  if (gradient == NULL) goto end;
  memcpy(PyArray_DATA((PyArrayObject *)gradient), space->gradient, bytes);
  PyObject *value = PyFloat_FromDouble(space->ctx->value);
  result = value == NULL ? NULL : PyTuple_Pack(2, value, gradient);
  Py_XDECREF(value);
  Py_DECREF(gradient);
end:
  give(call, model, space);
  return result;
}

/* ------------------------------------------------------------ the type */

static PyObject *make(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
  static char *names[] = {"unit", "run", "entry", "bound", "n", "with_gradient", "keeps", NULL};
  PyObject *unit, *run, *entry, *bound;
  Py_ssize_t n;
  int with_gradient, keeps;
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "OOOOnpp", names, &unit, &run, &entry, &bound, &n,
                                   &with_gradient, &keeps))
    return NULL;
  allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
  density_call *call = (density_call *)allocate(type, 0);
  if (call == NULL) return NULL;
  call->run = PyLong_AsVoidPtr(run);
  call->entry = PyLong_AsVoidPtr(entry);
  call->bound = PyLong_AsVoidPtr(bound);
  call->n = n;
  call->with_gradient = with_gradient;
  call->keeps = keeps;
  Py_INCREF(unit);
  call->unit = unit;
  if (PyErr_Occurred()) {
    Py_DECREF((PyObject *)call);
    return NULL;
  }
  return (PyObject *)call;
}

static void release(PyObject *self) {
  density_call *call = (density_call *)self;
  PyTypeObject *type = Py_TYPE(self);
  for (int i = 0; i < KEPT; ++i) drop(call->idle[i]);
  Py_XDECREF(call->unit);
  ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(type);
}

/* ------------------------------------------------------------ memory of C that goes with a Python object */

static void free_owned(PyObject *capsule) {
  void (*give_back)(void *) = (void (*)(void *))PyCapsule_GetContext(capsule);
  void *address = PyCapsule_GetPointer(capsule, NULL);
  Py_BEGIN_ALLOW_THREADS /* it may wait for calls of other threads */
  give_back(address);
  Py_END_ALLOW_THREADS
}

static PyObject *owned(PyObject *module, PyObject *args) {
  (void)module;
  unsigned long long address, give_back;
  if (!PyArg_ParseTuple(args, "KK", &address, &give_back)) return NULL;
  PyObject *capsule = PyCapsule_New((void *)(uintptr_t)address, NULL, free_owned);
  if (capsule != NULL && PyCapsule_SetContext(capsule, (void *)(uintptr_t)give_back) < 0) Py_CLEAR(capsule);
  return capsule;
}

static PyMethodDef functions[] = {
    {"owned", owned, METH_VARARGS,
     "owned(address, give_back): what calls the C function `give_back` with the address when nobody refers to it.\n\n"
     "No Python code runs then: an interrupt that comes in `__del__`, or in a callback of a weak reference, is lost."},
    {NULL, NULL, 0, NULL},
};

/* ------------------------------------------------------------ the module */

static PyMethodDef methods[] = {
    {"evaluate", (PyCFunction)(void (*)(void))evaluate, METH_FASTCALL,
     "evaluate(model, theta, jacobian, out): the log density, with its gradient if there is one.\n\n"
     "None if theta or out is not a contiguous array of float64 and of the right shape."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef members[] = {
    {"unit", T_OBJECT_EX, offsetof(density_call, unit), READONLY, "What is evaluated."},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "Evaluations of a loaded unit."},
    {Py_tp_new, make},
    {Py_tp_dealloc, release},
    {Py_tp_methods, methods},
    {Py_tp_members, members},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "ulam.runtime._calls.DensityCall",
    .basicsize = sizeof(density_call),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "ulam.runtime._calls", .m_doc = "Calls of compiled code from Python.", .m_size = -1,
    .m_methods = functions,
};

PyMODINIT_FUNC PyInit__calls(void) {
  import_array();
  PyObject *module = PyModule_Create(&definition);
  if (module == NULL) return NULL;
#ifdef Py_GIL_DISABLED
  PyUnstable_Module_SetGIL(module, Py_MOD_GIL_NOT_USED);
#endif
  name_take = PyUnicode_InternFromString("_take");
  name_give = PyUnicode_InternFromString("_give");
  name_end = PyUnicode_InternFromString("_end_evaluation");
  PyObject *type = PyType_FromSpec(&spec);
  if (!name_take || !name_give || !name_end || type == NULL || PyModule_AddObjectRef(module, "DensityCall", type) < 0)
    Py_CLEAR(module);
  Py_XDECREF(type);
  return module;
}
